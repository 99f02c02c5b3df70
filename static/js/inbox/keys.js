// Keyboard shortcuts of a single key. They are ignored while somebody types, and each browser can turn them off.
const STORED = "gadget-keys";
const TYPING = "input, textarea, select, [contenteditable]";
const OWN_ENTER = "a, button, summary";

export function areKeysOn() {
  try {
    return localStorage.getItem(STORED) !== "off";
  } catch {
    return true;
  }
}

function switchKeys(isOn) {
  try {
    localStorage.setItem(STORED, isOn ? "on" : "off");
  } catch {
    // Without storage, the shortcuts stay on.
  }
}

function isShortcut(event) {
  const isTyped = event.isComposing || event.target.closest?.(TYPING);
  const hasModifier = event.ctrlKey || event.metaKey || event.altKey;
  return !event.defaultPrevented && !isTyped && !hasModifier && !document.querySelector("dialog[open]");
}

// `acts` has a function for each key; those in `repeating` may be held down.
export function listenForKeys(acts, repeating) {
  document.addEventListener("keydown", (event) => {
    const act = acts[event.key];
    if (!act || !areKeysOn() || !isShortcut(event) || (event.repeat && !repeating.has(event.key))) {
      return;
    }
    if (event.key === "Enter" && event.target.closest?.(OWN_ENTER)) {
      return;
    }
    event.preventDefault();
    act();
  });
}

// Prepares the help dialog, its button and its switch. Returns a function that opens the dialog.
export function prepareHelp() {
  const dialog = document.querySelector("[data-keys]");
  const button = document.querySelector("[data-keys-help]");
  const keys = dialog.querySelector("[data-keys-switch]");
  const open = () => {
    keys.checked = areKeysOn();
    dialog.showModal();
  };
  keys.addEventListener("change", () => switchKeys(keys.checked));
  button.addEventListener("click", open);
  button.hidden = false;
  return open;
}
