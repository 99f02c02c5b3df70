// Keyboard shortcuts without modifiers. They are ignored while somebody types, and each browser can turn them off.
// On every page: `g` and a letter goes to a page of the side bar, `/` to the search, `?` to the help.
import { areKeysOn, explainRefusal, isShortcut, switchKeys } from "./key_guard.js";
import { openPalette } from "./palette.js";

const HANDLES_ENTER = "a:not([data-row] > [aria-current]), button, summary"; // the selected row leads to its card, as Enter does
const GO_MS = 1500;
const dialog = document.querySelector("[data-keys]");

// `actions` has a function for each key; keys in `repeating` may be held down. `refuse` shows why a key does nothing now;
// without it, the keys also work beside an open form, because they only lead somewhere.
export function listenForKeys(actions, repeating, refuse = null) {
  document.addEventListener("keydown", (event) => {
    const action = actions[event.key];
    if (!action || !isShortcut(event) || (event.repeat && !repeating.has(event.key))) {
      return;
    }
    if (event.key === "Enter" && event.target.closest?.(HANDLES_ENTER)) {
      return;
    }
    event.preventDefault();
    const why = refuse ? explainRefusal() : "";
    why ? refuse(why) : action();
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
  if (!isShortcut(event)) {
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
