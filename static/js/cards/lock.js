// A locked card takes no decision: one is on its way, or another card has replaced it.
import { announce } from "../page/announce.js";
import { updateApproveButton } from "./guard.js";

const CONTROLS = ".decide :is(button, input, select, textarea)";
const focused = new WeakMap();

// A disabled control loses the focus, so the card itself takes it until the response arrives.
export function lock(card) {
  card.dataset.locked = "";
  if (card.contains(document.activeElement)) {
    focused.set(card, document.activeElement);
    card.focus({ preventScroll: true });
  }
  for (const control of card.querySelectorAll(CONTROLS)) {
    control.disabled = true;
  }
}

export function unlock(card) {
  delete card.dataset.locked;
  card.removeAttribute("aria-busy");
  for (const control of card.querySelectorAll(CONTROLS)) {
    control.disabled = false;
  }
  if (card.querySelector(".approve-button")) {
    updateApproveButton(card);
  }
  if (document.activeElement === card) {
    focused.get(card)?.focus({ preventScroll: true });
  }
}

export function showNote(card, text) {
  const note = card.querySelector("[data-outcome]");
  if (note) {
    note.textContent = text;
    note.hidden = false;
  }
  announce(text);
}
