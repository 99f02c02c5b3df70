// The actions of keys on the shown card. If a key does nothing, a visible note says why.
import { moveToMissing } from "../cards/guard.js";
import { focusFirstField, openForms } from "../frame/key_guard.js";
import { announce } from "../page/announce.js";
import { readSpoken } from "../page/spoken_text.js";
import { paneCard } from "./pane.js";
import { allRows, selectedRow } from "./rows.js";
import { showToast } from "./toasts.js";

const FAST_MS = 250;
let shownAt = 0;

// Another card, or another part of it, has just come into view.
export function noteShown() {
  shownAt = performance.now();
}

export function refuse(why) {
  showToast(why, { isRefusal: true });
}

// True while another card is selected than the one in the pane.
export function isBehind() {
  const row = selectedRow();
  return Boolean(row) && paneCard()?.dataset.card !== row.dataset.row;
}

// Keys act on the selected row: as long as its card is not shown, they do nothing.
function isLoading() {
  const isLate = isBehind();
  if (isLate) {
    refuse("The selected card is not shown yet.");
  }
  return isLate;
}

// Nobody has read a card that was shown a moment ago: the key was meant for the one before.
function isTooEarly() {
  const isFast = performance.now() - shownAt < FAST_MS;
  if (isFast) {
    refuse("This card has just appeared. Press the key again.");
  }
  return isFast;
}

// Calls `act` with the card if it waits and the reader may decide it.
export function withCard(act) {
  const card = paneCard();
  if (isLoading()) {
    return;
  }
  if (!card || !("open" in card.dataset)) {
    refuse(allRows().length ? "Select a waiting card first, with j and k." : "You’re all caught up.");
  } else if (card.querySelector("form[data-action=answer]")) {
    card.querySelector("form[data-action=answer] textarea").focus();
    refuse("mayOperate" in document.body.dataset ? "This is a question: write an answer, or press the number of a choice." : "Only operators can answer questions.");
  } else if (!("mayDecide" in document.body.dataset)) {
    refuse("Only approvers can decide cards.");
  } else if (card.querySelector("form[data-action=resolve]")) {
    card.querySelector("form[data-action=resolve] input[name=reason]").focus();
  } else if ("locked" in card.dataset) {
    refuse("This card cannot be decided now.");
  } else {
    act(card);
  }
}

// The two-person rule: the person who asked for the call may edit the card, but someone else must decide it.
export function unlessOwn(act) {
  return (card) => ("isBarred" in card.dataset ? refuse(explainBar(card)) : act(card));
}

function explainBar(card) {
  const own = card.querySelector("[data-only-user].two-person-rule:not([hidden]) span") ?? card.querySelector(".two-person-rule span");
  return readSpoken(own);
}

export function approve(card) {
  const button = card.querySelector(".approve-button");
  if (isTooEarly()) {
    return;
  }
  if (!button || button.disabled || card.querySelector("[data-confirm]")) {
    goToMissing(card);
  } else {
    button.form.requestSubmit(button);
  }
}

// Enter goes to the card, or to the next step that it needs.
export function goToCard() {
  const card = paneCard();
  if (isLoading()) {
    return;
  }
  if (card && !("open" in card.dataset)) {
    card.focus({ preventScroll: true });
    refuse("This card is no longer waiting.");
  } else {
    withCard(unlessOwn(goToMissing));
  }
}

// Opens the page of the card.
export function openPage() {
  if (!isLoading()) {
    paneCard()?.querySelector(".own-page")?.click();
  }
}

// Goes to the next step that the card needs: opens unread parts first, and then focuses the confirmation. A part that
// was just opened counts as just shown.
function goToMissing(card) {
  const openAll = card.querySelector("[data-unread]:not([hidden]) [data-open-all]:not([hidden])");
  if (!openAll) {
    moveToMissing(card);
    return;
  }
  const first = card.querySelector(".effect details:not([open]), .sentence details:not([open]), .changed details:not([open])");
  openAll.click();
  noteShown();
  const confirm = card.querySelector("[data-confirm]");
  (confirm ?? card).focus({ preventScroll: true });
  first?.scrollIntoView({ block: "nearest" });
  announce(confirm ? "Opened. Read it, then type the confirmation." : "Opened. Read it, then decide.");
}

export function openForm(card, name) {
  const form = card.querySelector(`.actions > .${name}`);
  if (form) {
    form.open = true;
    form.addEventListener("form-loaded", () => focusFirstField(form), { once: true });
    focusFirstField(form);
  } else {
    refuse("This card cannot be edited.");
  }
}

// A number answers a question with one of its choices.
export function choose(number) {
  const button = paneCard()?.querySelectorAll("form[data-action=answer] button[name=choice]")[number - 1];
  if (isLoading()) {
    return;
  }
  if (!button) {
    refuse("This card has no choice with this number.");
  } else if (!isTooEarly()) {
    button.form.requestSubmit(button);
  }
}

// Calls `act` with the selected row.
export function withRow(act) {
  const row = selectedRow();
  row ? act(row) : refuse("Select a waiting card first, with j and k.");
}

// Esc closes an open form wherever the focus is; typed edits stay until the form is closed by hand.
export function leaveForm(event) {
  if (event.key !== "Escape" || event.defaultPrevented || event.isComposing || document.querySelector("dialog[open], :popover-open")) {
    return;
  }
  const typing = event.target.closest(".confirm, .answer");
  const form = event.target.closest("details:has(form)") ?? openForms().at(-1);
  const card = (form ?? typing)?.closest("[data-card]");
  if (!(form ?? typing) || (form?.matches(".edit") && "edited" in card.dataset)) {
    return;
  }
  if (form) {
    form.open = false;
  }
  (card ?? paneCard() ?? form.querySelector("summary")).focus({ preventScroll: true });
}
