// Short notes about decisions, each with a button to undo an approval until its call starts. `u` undoes the newest.
import { announce } from "../page/announce.js";

const SHOWN_MS = 5000;
const MAX_SHOWN = 3;
const place = document.querySelector("[data-toasts]");
const template = document.querySelector("template[data-toast]");
const undoable = []; // the undo functions for `u`, the newest last

// Shows a text. With `undo`, the note offers it for that many seconds. A refused key replaces the note of the one before.
export function showToast(text, { undo = null, seconds = 0, isRefusal = false, staysFor = SHOWN_MS / 1000 } = {}) {
  const toast = template.content.firstElementChild.cloneNode(true);
  if (isRefusal) {
    place.querySelectorAll("[data-refusal]").forEach((old) => old.remove());
    toast.dataset.refusal = "";
  }
  const button = toast.querySelector("[data-toast-undo]");
  toast.querySelector("[data-toast-text]").textContent = text;
  const act = () => {
    end();
    undo();
  };
  const end = () => {
    toast.remove();
    if (undoable.includes(act)) {
      undoable.splice(undoable.indexOf(act), 1);
    }
  };
  button.hidden = !undo;
  button.addEventListener("click", act);
  if (undo) {
    undoable.push(act);
  }
  place.append(toast);
  [...place.querySelectorAll(":scope > :not([data-progress])")].slice(0, -MAX_SHOWN).forEach((old) => old.remove());
  setTimeout(end, (undo ? seconds : staysFor) * 1000);
  announce(text);
}

// Shows the progress of an operation until it ends.
export function showProgress(text) {
  const toast = template.content.firstElementChild.cloneNode(true);
  const line = toast.querySelector("[data-toast-text]");
  toast.querySelector("[data-toast-undo]").hidden = true;
  toast.dataset.progress = "";
  line.textContent = text;
  place.append(toast);
  announce(text);
  return { tell: (words) => (line.textContent = words), end: () => toast.remove() };
}

// Calls the undo of the newest note; returns false without one.
export function undoNewest() {
  const act = undoable.at(-1);
  act?.();
  return Boolean(act);
}
