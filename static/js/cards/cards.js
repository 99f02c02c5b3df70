// Cards on a page: prepares them for their reader, and replaces a card by its current state from the server.
import { elementsFrom, fetchPage } from "../page/fragments.js";
import { watchLengths } from "../page/length.js";
import { countDown, localTimes } from "../page/times.js";
import { visible } from "../page/visible.js";
import { guardApprove, updateApproveButton } from "./guard.js";
import { lock, showNote } from "./lock.js";
import { noteMoves } from "./moves.js";

// Fetches the current state of the card or, with `newest`, the card that has replaced it.
export async function fetchCard(card, newest) {
  return (await fetchPage(`${card.dataset.url}${newest ? "?newest=1" : ""}`)).querySelector("[data-card]");
}

export function prepareCards() {
  noteMoves();
  watchLengths();
  for (const card of document.querySelectorAll("[data-card]:not([data-prepared])")) {
    card.dataset.prepared = "";
    if (card.querySelector(".approve-button")) {
      guardApprove(card);
      watchEdit(card);
      allowOneOpenForm(card);
    }
    showOwnForms(card);
    if (card.dataset.barredUsers?.split(" ").includes(document.body.dataset.user)) {
      card.dataset.isBarred = "";
    }
  }
}

// Shows forms that are for one person to this person alone.
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
        form.querySelector("[name=reason]")?.focus({ preventScroll: true });
        form.scrollIntoView({ block: "nearest" });
      }
    });
    form.querySelector("[name=reason]")?.addEventListener("keydown", chooseReason);
  }
}

// In the empty field, a digit denies with one of the reasons below it.
function chooseReason(event) {
  const reasons = event.target.form.querySelectorAll("[name=preset]");
  const chosen = event.target.value === "" && !event.ctrlKey && !event.metaKey && !event.altKey && reasons[Number(event.key) - 1];
  if (chosen && !event.repeat) {
    event.preventDefault();
    chosen.form.requestSubmit(chosen);
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
  keepTypedValues(card, current);
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
}

// Keeps the values that were typed into the edit form when somebody else decides the card, so that they can be used again.
function keepTypedValues(card, current) {
  const shown = card.querySelector(".typed-values");
  if (shown) {
    current.append(shown);
    return;
  }
  const section = card.querySelector("template[data-typed-values]")?.content.firstElementChild;
  const inputs = [...card.querySelectorAll(".edit [name^='param.']")].filter((input) => input.value !== initialValue(input));
  if (!section || !("edited" in card.dataset) || inputs.length === 0) {
    return;
  }
  for (const input of inputs) {
    const name = Object.assign(document.createElement("dt"), { textContent: input.name.replace("param.", "").replaceAll(".", " · ") });
    const text = Object.assign(document.createElement("dd"), { textContent: visible(input.value) });
    section.querySelector("dl").append(name, text);
  }
  current.append(section);
}

function initialValue(input) {
  return [...(input.options ?? [])].find((option) => option.defaultSelected)?.value ?? input.defaultValue ?? "";
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
