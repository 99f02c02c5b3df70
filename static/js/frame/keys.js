// Keyboard shortcuts without modifiers. They are ignored while somebody types, and each browser can turn them off.
// On every page: `g` and a letter goes to a page of the side bar, `/` to the search, `?` to the help.
import { openPalette } from "./palette.js";

const STORAGE_KEY = "gadget-keys";
const TYPING = "input, textarea, select, [contenteditable]";
const HANDLES_ENTER = "a, button, summary";
const GO_MS = 1500;
const dialog = document.querySelector("[data-keys]");

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

function openHelp() {
  dialog.querySelector("[data-keys-switch]").checked = areKeysOn();
  dialog.showModal();
}

function goToSearch() {
  const own = document.querySelector("main :is([data-search], [type=search])");
  own ? own.focus() : openPalette();
}

// `g`, and soon after it a letter. It listens first, so that the letter is not a shortcut of the page, too.
let goingUntil = 0;

function go(event) {
  const isGoing = performance.now() < goingUntil;
  goingUntil = 0;
  if (!areKeysOn() || !isShortcut(event)) {
    return;
  }
  const place = isGoing && document.querySelector(`[data-place-key="${CSS.escape(event.key)}"]`);
  if (place) {
    event.preventDefault();
    event.stopImmediatePropagation();
    location.assign(place.href);
  } else if (event.key === "g") {
    goingUntil = performance.now() + GO_MS;
  }
}

if (dialog) {
  dialog.querySelector("[data-keys-switch]").addEventListener("change", (event) => switchKeys(event.target.checked));
  for (const button of document.querySelectorAll("[data-keys-help]")) {
    button.addEventListener("click", openHelp);
    button.hidden = false;
  }
  document.addEventListener("keydown", go, { capture: true });
  listenForKeys({ "?": openHelp, "/": goToSearch }, new Set());
}
