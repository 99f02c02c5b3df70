// Short notes about decisions, each with a button to undo an approval until its call starts. `u` undoes the last one.
import { announce } from "../page/announce.js";

const SHOWN_MS = 5000;
const MAX_SHOWN = 3;
const place = document.querySelector("[data-toasts]");
const template = document.querySelector("template[data-toast]");
const undoable = []; // the acts of `u`, the newest last

// Shows a text. With `undo`, the note offers it for that many seconds.
export function showToast(text, { undo = null, seconds = 0 } = {}) {
  const toast = template.content.firstElementChild.cloneNode(true);
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
  [...place.children].slice(0, -MAX_SHOWN).forEach((old) => old.remove());
  setTimeout(end, undo ? seconds * 1000 : SHOWN_MS);
  announce(text);
}

export function undoLast() {
  const act = undoable.at(-1);
  act ? act() : showToast("No approval can be undone.");
}
