// The search for everything: Ctrl+K opens it on every page. The server finds and renders; the arrows choose, Enter opens.
import { fetchPage } from "../page/fragments.js";
import { csrfToken } from "../page/requests.js";

const WAIT_MS = 80;
const dialog = document.querySelector("[data-palette]");
const field = dialog?.querySelector("[data-palette-field]");
const results = dialog?.querySelector("[data-palette-results]");
let timer = 0;
let asked = 0;
let finding = Promise.resolve();
let hasMoved = false; // since the last letter

const options = () => [...results.querySelectorAll("a[role=option]")];
const chosen = () => results.querySelector("[aria-selected=true]");

function choose(option) {
  chosen()?.setAttribute("aria-selected", "false");
  option?.setAttribute("aria-selected", "true");
  option?.scrollIntoView({ block: "nearest" });
  if (option) {
    field.setAttribute("aria-activedescendant", option.id);
  } else {
    field.removeAttribute("aria-activedescendant");
  }
}

function move(step) {
  const all = options();
  hasMoved = true;
  if (all.length) {
    choose(all[(all.indexOf(chosen()) + step + all.length) % all.length]);
  }
}

// Shows the hits for the text; a response that arrives after a later one is dropped. A hit that was chosen meanwhile
// stays chosen.
async function find() {
  clearTimeout(timer);
  timer = 0;
  const number = ++asked;
  try {
    const page = await fetchPage(dialog.dataset.url + encodeURIComponent(field.value.trim()));
    if (number === asked) {
      const kept = hasMoved ? chosen()?.href : null;
      results.replaceChildren(...document.adoptNode(page.body).childNodes);
      results.scrollTop = 0;
      choose(options().find((option) => option.href === kept) ?? options()[0]);
    }
  } catch {
    if (number === asked) {
      const note = document.createElement("p");
      note.textContent = "The search could not be reached. Try again.";
      results.replaceChildren(note);
      choose(null);
    }
  }
}

export function openPalette() {
  if (dialog.open || document.querySelector("dialog[open]")) {
    return;
  }
  document.querySelectorAll(":popover-open").forEach((one) => one.hidePopover());
  field.value = "";
  dialog.showModal();
  field.focus();
  finding = find();
}

// Opens the chosen hit, once the results for the current text have arrived.
async function open(event) {
  if (timer) {
    finding = find();
  }
  await finding;
  const option = chosen();
  if (!option) {
    return;
  }
  if ("post" in option.dataset) {
    send(option);
  } else if (event.ctrlKey || event.metaKey) {
    window.open(option.href, "_blank", "noopener");
  } else {
    dialog.close();
    location.assign(option.href);
  }
}

// An action that needs no page: its fields are sent to its address.
function send(option) {
  const form = Object.assign(document.createElement("form"), { method: "post", action: option.href, hidden: true });
  const fields = [...new URLSearchParams(option.dataset.post), ["csrfmiddlewaretoken", csrfToken()]];
  form.append(...fields.map(([name, value]) => Object.assign(document.createElement("input"), { type: "hidden", name, value })));
  document.body.append(form);
  dialog.close();
  form.submit();
}

const KEYS = {
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  PageDown: () => move(5),
  PageUp: () => move(-5),
  Enter: open,
};

if (dialog) {
  document.addEventListener(
    "keydown",
    (event) => {
      if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
        event.preventDefault();
        dialog.open ? dialog.close() : openPalette();
      }
    },
    { capture: true },
  );
  for (const link of document.querySelectorAll("[data-open-palette]")) {
    if (/Mac|iPhone|iPad/.test(navigator.platform)) {
      link.querySelector("kbd").textContent = "⌘ K";
    }
    link.addEventListener("click", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) {
        event.preventDefault();
        openPalette();
      }
    });
  }
  field.addEventListener("input", () => {
    hasMoved = false;
    clearTimeout(timer);
    timer = setTimeout(() => (finding = find()), WAIT_MS);
  });
  field.addEventListener("keydown", (event) => {
    if (KEYS[event.key] && !event.isComposing) {
      event.preventDefault();
      KEYS[event.key](event);
    }
  });
  results.addEventListener("click", (event) => {
    const option = event.target.closest("a[role=option]");
    if (option && "post" in option.dataset) {
      event.preventDefault();
      send(option);
    } else if (option) {
      dialog.close();
    }
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
}
