// Single keys: ignored while somebody types, and off for good in a browser whose reader has switched them off.
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
    // A browser that keeps nothing has its keys on.
  }
}

function isMeant(event) {
  const isTyped = event.isComposing || event.target.closest?.(TYPING);
  const hasModifier = event.ctrlKey || event.metaKey || event.altKey;
  return !event.defaultPrevented && !isTyped && !hasModifier && !document.querySelector("dialog[open]");
}

// `acts` by key; those in `repeating` may be held down.
export function listenForKeys(acts, repeating) {
  document.addEventListener("keydown", (event) => {
    const act = acts[event.key];
    if (!act || !areKeysOn() || !isMeant(event) || (event.repeat && !repeating.has(event.key))) {
      return;
    }
    if (event.key === "Enter" && event.target.closest?.(OWN_ENTER)) {
      return;
    }
    event.preventDefault();
    act();
  });
}

// The help dialog, the button that opens it, and the switch in it. Returns what opens it.
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
