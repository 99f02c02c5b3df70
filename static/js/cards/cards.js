// Cards on a page: prepares them for their reader, and replaces a card by its current state from the server.
import { elementsFrom, fetchPage } from "../page/fragments.js";
import { watchLengths } from "../page/length.js";
import { countDown, localTimes } from "../page/times.js";
import { readTyped, writeTyped } from "../page/typed_texts.js";
import { visible } from "../page/visible.js";
import { areKeysOn, focusFirstField } from "../frame/key_guard.js";
import { guardApprove, updateApproveButton } from "./guard.js";
import { lock, showNote } from "./lock.js";
import { noteMoves } from "./moves.js";

const CHOOSE_MS = 600; // the next letter of a sentence comes sooner

// Fetches the current state of the card or, with `newest`, the card that has replaced it.
export async function fetchCard(card, newest) {
  return (await fetchPage(`${card.dataset.url}${newest ? "?newest=1" : ""}`)).querySelector("[data-card]");
}

export function prepareCards() {
  noteMoves();
  watchLengths();
  for (const card of document.querySelectorAll("[data-card]:not([data-prepared])")) {
    card.dataset.prepared = "";
    if (card.querySelector(".approve-button, .dismiss-button")) {
      guardApprove(card);
      watchEdit(card);
      allowOneOpenForm(card);
    }
    prepareForReader(card);
  }
}

export function prepareForReader(card) {
  showOwnForms(card);
  const isBarred = card.dataset.barredUsers?.split(" ").includes(document.body.dataset.user);
  card.toggleAttribute("data-is-barred", Boolean(isBarred));
}

// Shows forms that are meant for one person only to that person.
export function showOwnForms(card) {
  for (const form of card.querySelectorAll("[data-only-user]")) {
    form.hidden = form.dataset.onlyUser !== document.body.dataset.user;
  }
}

// Both forms open in the same place, so opening one closes the other, also in browsers that ignore the `name` of
// `details`.
function allowOneOpenForm(card) {
  const forms = [...card.querySelectorAll(".actions > details")];
  for (const form of forms) {
    form.addEventListener("toggle", () => {
      if (form.open) {
        forms.forEach((other) => (other.open &&= other === form));
        focusFirstField(form);
        form.scrollIntoView({ block: "nearest" });
      }
    });
    form.querySelector("[name=reason]")?.addEventListener("input", chooseReason);
  }
}

// In the inbox, a lone digit in the empty field denies with one of the reasons below it, unless it begins a sentence.
function chooseReason({ target: field, inputType, isComposing }) {
  const reasons = [...field.form.querySelectorAll("[name=preset]")];
  const isKey = field.closest("[data-desk]") && areKeysOn() && inputType === "insertText" && !isComposing;
  const chosen = isKey && /^[1-9]$/.test(field.value) && reasons[field.value - 1];
  reasons.forEach((reason) => reason.toggleAttribute("data-chosen", reason === chosen));
  clearTimeout(field.choosing);
  if (chosen) {
    field.choosing = setTimeout(() => {
      if (document.activeElement === field && field.closest("details").open) {
        field.value = "";
        field.form.requestSubmit(chosen);
      }
    }, CHOOSE_MS);
  }
}

// Marks the card as edited while its form has values that the card does not show. Closing the form discards them.
function watchEdit(card) {
  const edit = card.querySelector("details.edit");
  edit?.addEventListener("input", () => {
    card.dataset.edited = "";
    updateApproveButton(card);
  });
  edit?.addEventListener("toggle", () => {
    fetchForm(card, edit);
    if (!edit.open && "edited" in card.dataset) {
      edit.querySelector("form").reset();
      delete card.dataset.edited;
      updateApproveButton(card);
    }
  });
}

// A card that arrived through a socket has no edit form yet: opening it fetches the form from the card's own page.
async function fetchForm(card, edit) {
  const note = edit.querySelector("[data-form-placeholder]:not([data-requested])");
  if (!note || !edit.open) {
    return;
  }
  note.dataset.requested = "";
  try {
    const form = (await fetchPage(card.querySelector(".own-page").href)).querySelector(`#${card.id} .edit > form`);
    if (form) {
      note.replaceWith(document.adoptNode(form));
      edit.dispatchEvent(new CustomEvent("form-loaded", { bubbles: true }));
    } else {
      await refreshCard(card, false);
    }
  } catch {
    delete note.dataset.requested;
    note.textContent = "The form could not be loaded. Close this and try again.";
  }
}

// Replaces the card by its current state and keeps the focus in it.
export async function refreshCard(card, newest) {
  const fetched = await fetchCard(card, newest);
  if (!fetched || !card.isConnected) {
    return;
  }
  const [current] = elementsFrom(fetched.outerHTML);
  const hadFocus = card.contains(document.activeElement);
  const keepTyped = takeTyped(card, current);
  const duplicate = document.getElementById(current.id);
  if (duplicate && duplicate !== card) {
    duplicate.remove(); // a live message has shown it already
  }
  card.replaceWith(current);
  current.dispatchEvent(new CustomEvent("card-shown", { bubbles: true }));
  if (hadFocus) {
    current.focus({ preventScroll: true });
  }
  localTimes(current);
  countDown(current);
  prepareCards();
  keepTyped();
  return current;
}

// Reads what was typed into the card, and returns a function for the card that replaces it. If that is the same card, the
// function types the texts again; otherwise it shows them with a note that they were not sent.
export function takeTyped(card, current) {
  const typed = readTyped(card);
  const shown = card.querySelector(".typed-values");
  const isSame = "open" in current.dataset && current.dataset.digest === card.dataset.digest;
  return () => {
    const left = isSame ? writeTyped(current, typed) : typed;
    if (left.length) {
      current.append(buildTypedValues(left));
    } else if (shown) {
      current.append(shown);
    }
  };
}

function buildTypedValues(typed) {
  const section = Object.assign(document.createElement("section"), { className: "typed-values" });
  const isEdit = typed.some(({ name }) => name.startsWith("param."));
  const text = `The card has changed meanwhile. Your ${isEdit ? "edit was not applied" : "text was not sent"}. Here is what you typed:`;
  const list = document.createElement("dl");
  for (const { name, value } of typed) {
    const shownName = name.replace("param.", "").replaceAll(".", " · ");
    const term = Object.assign(document.createElement("dt"), { textContent: shownName });
    list.append(term, Object.assign(document.createElement("dd"), { textContent: visible(value) }));
  }
  section.setAttribute("role", "alert");
  section.append(Object.assign(document.createElement("p"), { className: "label", textContent: text }), list);
  return section;
}

// Locks a card that was replaced by another, and offers a button that shows the new one.
export function offerNewCard(card, text = "This card has changed since it was shown. Nothing was decided. ") {
  if ("locked" in card.dataset && card.querySelector("[data-outcome] button")) {
    return;
  }
  card.removeAttribute("aria-busy");
  lock(card);
  showNote(card, text);
  const button = Object.assign(document.createElement("button"), {
    type: "button",
    className: "secondary",
    textContent: "Show the new card and what changed",
  });
  button.addEventListener("click", () => refreshCard(card, true));
  card.querySelector("[data-outcome]")?.append(button);
}

// Shows that the card was decided or replaced elsewhere; `text` is the note on a replaced card.
export async function refreshIfChanged(card, text) {
  const newest = await fetchCard(card, true);
  if (!newest || !card.isConnected || "locked" in card.dataset) {
    return;
  }
  const isReplaced = newest.dataset.card !== card.dataset.card;
  if (isReplaced && !newest.matches(".unknown")) {
    offerNewCard(card, text);
  } else if (isReplaced || !("open" in newest.dataset)) {
    await refreshCard(card, false);
  }
}
