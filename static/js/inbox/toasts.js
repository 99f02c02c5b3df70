// A short note about each decision, with a button to undo an approval until its call starts.
import { announce } from "../page/announce.js";

const SHOWN_MS = 5000;
const place = document.querySelector("[data-toasts]");
const template = document.querySelector("template[data-toast]");

// Shows a text. With `undo`, the note stays for that many seconds and offers it; returns a function that ends the note.
export function showToast(text, { undo = null, seconds = 0 } = {}) {
  const toast = template.content.firstElementChild.cloneNode(true);
  const button = toast.querySelector("[data-toast-undo]");
  toast.querySelector("[data-toast-text]").textContent = text;
  const end = () => toast.remove();
  button.hidden = !undo;
  button.addEventListener("click", () => {
    end();
    undo();
  });
  place.replaceChildren(toast);
  setTimeout(end, undo ? seconds * 1000 : SHOWN_MS);
  announce(text);
  return end;
}
