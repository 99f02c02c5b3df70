// Keyboard shortcuts of a single key. They are ignored while somebody types, and each browser can turn them off.
const STORAGE_KEY = "gadget-keys";
const TYPING = "input, textarea, select, [contenteditable]";
const HANDLES_ENTER = "a, button, summary";

function areKeysOn() {
  try {
    return localStorage.getItem(STORAGE_KEY) !== "off";
  } catch {
    return true;
  }
}

function switchKeys(isOn) {
  try {
    localStorage.setItem(STORAGE_KEY, isOn ? "on" : "off");
  } catch {
    // Without storage, the shortcuts stay on.
  }
}

function isShortcut(event) {
  const isTyped = event.isComposing || event.target.closest?.(TYPING);
  const hasModifier = event.ctrlKey || event.metaKey || event.altKey;
  return !event.defaultPrevented && !isTyped && !hasModifier && !document.querySelector("dialog[open]");
}

// `actions` has a function for each key; keys in `repeating` may be held down.
export function listenForKeys(actions, repeating) {
  document.addEventListener("keydown", (event) => {
    const action = actions[event.key];
    if (!action || !areKeysOn() || !isShortcut(event) || (event.repeat && !repeating.has(event.key))) {
      return;
    }
    if (event.key === "Enter" && event.target.closest?.(HANDLES_ENTER)) {
      return;
    }
    event.preventDefault();
    action();
  });
}

// Prepares the help dialog, its button and its switch. Returns a function that opens the dialog.
export function prepareHelp() {
  const dialog = document.querySelector("[data-keys]");
  const button = document.querySelector("[data-keys-help]");
  const checkbox = dialog.querySelector("[data-keys-switch]");
  const open = () => {
    checkbox.checked = areKeysOn();
    dialog.showModal();
  };
  checkbox.addEventListener("change", () => switchKeys(checkbox.checked));
  button.addEventListener("click", open);
  button.hidden = false;
  return open;
}
