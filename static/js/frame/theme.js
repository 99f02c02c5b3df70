// Switches the look of the pages: light, dark or the system's. The server reads the cookie and renders the right one at
// once; the stored copy is the admin's own setting, so that both look alike, and tells the browser's other tabs.
const COOKIE = "gadget_theme";
const STORAGE_KEY = "_x_adminTheme"; // where django-unfold stores it: "light", "dark" or "auto", as JSON
const MAX_AGE_S = 400 * 24 * 3600;
const SYSTEM = "auto";
const form = document.querySelector("[data-themes]");
const root = document.documentElement;

function store(theme) {
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `${COOKIE}=${theme}; path=/; max-age=${theme ? MAX_AGE_S : 0}; samesite=lax${secure}`;
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(theme || SYSTEM));
  } catch {
    // Without storage, only the cookie remembers the theme.
  }
}

// Returns the stored theme, empty for the system's; undefined if nothing is stored.
function readStored() {
  try {
    const theme = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "null");
    return { light: "light", dark: "dark", [SYSTEM]: "" }[theme];
  } catch {
    return undefined;
  }
}

function show(theme) {
  if (theme) {
    root.dataset.theme = theme;
  } else {
    delete root.dataset.theme;
  }
  document.querySelector('meta[name="color-scheme"]').content = theme || "light dark";
  for (const button of form?.querySelectorAll("[name=theme]") ?? []) {
    button.setAttribute("aria-pressed", String(button.value === theme));
  }
}

function follow() {
  const theme = readStored();
  if (theme !== undefined && theme !== (root.dataset.theme ?? "")) {
    store(theme);
    show(theme);
  }
}

follow();
addEventListener("storage", (event) => event.key === STORAGE_KEY && follow());
form?.addEventListener("submit", (event) => {
  event.preventDefault();
  store(event.submitter.value);
  show(event.submitter.value);
});
