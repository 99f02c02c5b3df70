// Cards on a page: prepared for their reader, and replaced by the card as the server shows it now.
import { updateAges } from "../page/ages.js";
import { elementsFrom, fetchPage } from "../page/fragments.js";
import { watchLengths } from "../page/length.js";
import { countDown, localTimes } from "../page/times.js";
import { visible } from "../page/visible.js";
import { guardApprove, updateApproveButton } from "./guard.js";
import { lock, showNote } from "./lock.js";
import { noteMoves } from "./moves.js";

// Fetches the card as it is now, or with `newest` the one that has replaced it.
export async function fetchCard(card, newest) {
  return (await fetchPage(`${card.dataset.url}${newest ? "?newest=1" : ""}`)).querySelector("[data-card]");
}

export function prepareCards() {
  noteMoves();
  updateAges();
  watchLengths();
  for (const card of document.querySelectorAll("[data-card]:not([data-prepared])")) {
    card.dataset.prepared = "";
    if (card.querySelector(".approve-button")) {
      guardApprove(card);
      watchEdit(card);
      allowOneOpenForm(card);
    }
    for (const form of card.querySelectorAll("[data-only-user]")) {
      form.hidden = form.dataset.onlyUser !== document.body.dataset.user;
    }
    if (card.dataset.barredUsers?.split(" ").includes(document.body.dataset.user)) {
      card.dataset.isBarred = "";
    }
  }
}

// The two forms open in the same place. One closes the other, also in browsers where `details` of one name do not.
function allowOneOpenForm(card) {
  const forms = [...card.querySelectorAll(".actions > details")];
  for (const form of forms) {
    form.addEventListener("toggle", () => form.open && forms.forEach((other) => (other.open &&= other === form)));
  }
}

// The card shows no value that is typed into the edit form; closing the form discards them.
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

// A card that came through a socket has no edit form: opening it fetches the form from the card's own page.
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

// Replaces the card by the card as it is now. The focus stays in it.
export async function refreshCard(card, newest) {
  const fetched = await fetchCard(card, newest);
  if (!fetched || !card.isConnected) {
    return;
  }
  const [now] = elementsFrom(fetched.outerHTML);
  const hadFocus = card.contains(document.activeElement);
  keepTyped(card, now);
  const double = document.getElementById(now.id);
  if (double && double !== card) {
    (double.closest("[data-inbox-card]") ?? double).remove(); // the list was quicker to show it
  }
  card.replaceWith(now);
  now.dispatchEvent(new CustomEvent("card-shown", { bubbles: true }));
  if (hadFocus) {
    now.focus({ preventScroll: true });
  }
  localTimes(now);
  countDown(now);
  prepareCards();
}

// Keeps the values that were typed into the edit form when somebody else decides the card, so that they can be used again.
function keepTyped(card, now) {
  const kept = card.querySelector(".typed-values");
  if (kept) {
    now.append(kept);
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
  now.append(section);
}

function initialValue(input) {
  return [...(input.options ?? [])].find((option) => option.defaultSelected)?.value ?? input.defaultValue ?? "";
}

// Locks a card that another one has replaced; the reader asks for the new one, which shows what changed.
export function offerNewCard(card, words = "This card has changed since it was shown. Nothing was decided. ") {
  if ("locked" in card.dataset && card.querySelector("[data-outcome] button")) {
    return;
  }
  card.removeAttribute("aria-busy");
  lock(card);
  showNote(card, words);
  const button = Object.assign(document.createElement("button"), {
    type: "button",
    className: "secondary",
    textContent: "Show the new card and what changed",
  });
  button.addEventListener("click", () => refreshCard(card, true));
  card.querySelector("[data-outcome]")?.append(button);
}

// Shows that the card was decided or replaced elsewhere; `words` say more if its reader has pressed a button.
export async function refreshIfChanged(card, words) {
  const newest = await fetchCard(card, true);
  if (!newest || !card.isConnected || "locked" in card.dataset) {
    return;
  }
  const isAnother = newest.dataset.card !== card.dataset.card;
  if (isAnother && !newest.matches(".unknown")) {
    offerNewCard(card, words);
  } else if (isAnother || !("open" in newest.dataset)) {
    await refreshCard(card, false);
  }
}

// Leaves a card that is still open as it is, with the values that are typed into it.
export async function refreshIfDecided(card) {
  const now = await fetchCard(card, false);
  if (now && !("open" in now.dataset)) {
    await refreshCard(card, false);
  }
}
