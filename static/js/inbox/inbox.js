// The inbox: new cards appear in call order, a decided card shows who decided it, and keys move between cards and decide.
import { prepareCards, refreshIfDecided } from "../cards/cards.js";
import { announce } from "../page/announce.js";
import { fetchPage } from "../page/fragments.js";
import { localTimes } from "../page/times.js";
import { listenForKeys, prepareHelp } from "./keys.js";

const list = document.querySelector("[data-inbox-list]");
const FIELD = "input:not([type=hidden]), textarea, select";
let isLoading = false;
let isStale = false;

function openCards() {
  return [...list.querySelectorAll("[data-card][data-open]")];
}

// Returns the place of the first of these cards that is in the list; a new card goes before it.
function findNextPlace(ids) {
  const next = ids.map((id) => document.getElementById(`card-${id}`)).find(Boolean);
  return next?.closest("[data-inbox-card]") ?? null;
}

async function refresh() {
  if (isLoading) {
    isStale = true;
    return;
  }
  isLoading = true;
  try {
    const now = await fetchPage(location.pathname + location.search);
    const waiting = new Map([...now.querySelectorAll("[data-inbox-card]")].map((one) => [one.dataset.inboxCard, one]));
    const shown = openCards().map((card) => card.dataset.card);
    for (const id of shown.filter((one) => !waiting.has(one))) {
      await refreshIfDecided(document.getElementById(`card-${id}`));
    }
    const inOrder = [...waiting.keys()];
    for (const [id, card] of waiting) {
      if (!shown.includes(id) && !document.getElementById(`card-${id}`)) {
        list.insertBefore(document.adoptNode(card), findNextPlace(inOrder.slice(inOrder.indexOf(id) + 1)));
      }
    }
    document.querySelector("[data-nothing]").hidden = list.children.length > 0;
    localTimes(list);
    prepareCards();
  } catch (error) {
    console.warn("The inbox could not be refreshed:", error.message);
  } finally {
    isLoading = false;
  }
  if (isStale) {
    isStale = false;
    refresh();
  }
}

document.addEventListener("inbox-changed", refresh);

// One card is selected: by a key, a click or Tab.
const selectedPlace = () => list.querySelector("[data-selected]");
const selectedCard = () => selectedPlace()?.querySelector("[data-card]");

function select(place) {
  if (place && place !== selectedPlace()) {
    delete selectedPlace()?.dataset.selected;
    place.dataset.selected = "";
  }
}

function goTo(card) {
  select(card.closest("[data-inbox-card]"));
  card.focus({ preventScroll: true });
  card.scrollIntoView({ block: card.offsetHeight > innerHeight * 0.8 ? "start" : "nearest" });
}

function move(step) {
  const cards = openCards();
  const here = selectedPlace();
  if (!here) {
    cards.length ? goTo(cards[0]) : announce("You’re all caught up.");
    return;
  }
  const direction = step > 0 ? Node.DOCUMENT_POSITION_FOLLOWING : Node.DOCUMENT_POSITION_PRECEDING;
  const further = cards.filter((card) => !here.contains(card) && here.compareDocumentPosition(card) & direction);
  const next = step > 0 ? further[0] : further.at(-1);
  next ? goTo(next) : announce(step > 0 ? "This is the last waiting card." : "This is the first waiting card.");
}

// Calls `act` with the selected card if it waits and the reader may decide it.
function withSelected(act) {
  const card = selectedCard();
  if (!card || !("open" in card.dataset)) {
    announce("Select a waiting card first, with j and k.");
  } else if (card.querySelector("form[data-action=answer]")) {
    card.querySelector("form[data-action=answer] textarea").focus();
    announce("mayOperate" in document.body.dataset ? "A question: write an answer." : "Only operators answer questions.");
  } else if (!("mayDecide" in document.body.dataset)) {
    announce("Only approvers decide cards.");
  } else if (card.querySelector("form[data-action=resolve]")) {
    card.querySelector("form[data-action=resolve] input[name=reason]").focus();
  } else if (!("locked" in card.dataset)) {
    act(card);
  }
}

// The two-person rule: whoever asked for the call may edit the card, and someone else decides it.
function unlessOwn(act) {
  return (card) => ("own" in card.dataset ? announce(card.querySelector(".eyes").textContent) : act(card));
}

function approve(card) {
  const confirm = card.querySelector("[data-confirm]");
  const button = card.querySelector(".approve-button");
  if (confirm) {
    confirm.focus();
    announce("Destructive: type the confirmation, then press Approve.");
  } else if (button.disabled) {
    announce([...card.querySelectorAll(".hint:not([hidden], .unread-as-it-is)")].map((hint) => hint.textContent).join(" "));
  } else {
    button.form.requestSubmit(button);
  }
}

function openForm(card, name, field) {
  const form = card.querySelector(`.acts > .${name}`);
  if (form) {
    form.open = true;
    const enter = () => form.querySelector(field)?.focus();
    form.addEventListener("form-came", enter, { once: true });
    enter();
  }
}

let lastApproved = "";

function undo() {
  const of = (card) => card?.querySelector("form.undo:not([hidden])");
  const form = of(document.getElementById(`card-${lastApproved}`)) ?? of(selectedCard());
  form ? form.requestSubmit() : announce("No approval can be undone.");
}

function leaveForm(event) {
  const form = event.target.closest(".acts > details, .confirm, .answer");
  const card = event.target.closest("[data-card]");
  if (event.key !== "Escape" || !form || (form.matches(".edit") && "edited" in card.dataset)) {
    return;
  }
  form.open = false;
  card.focus({ preventScroll: true });
}

if (list) {
  list.addEventListener("focusin", (event) => select(event.target.closest("[data-inbox-card]")));
  list.addEventListener("keydown", leaveForm);
  list.addEventListener("submit", (event) => {
    if (event.target.dataset.action === "approve") {
      lastApproved = event.target.closest("[data-card]").dataset.card;
    }
  });
  const help = prepareHelp();
  const acts = {
    j: () => move(1),
    k: () => move(-1),
    Enter: () => selectedCard()?.querySelector(".own-page")?.click(),
    a: () => withSelected(unlessOwn(approve)),
    d: () => withSelected(unlessOwn((card) => openForm(card, "deny", "input[name=reason]"))),
    e: () => withSelected((card) => openForm(card, "edit", FIELD)),
    u: undo,
    "?": help,
  };
  listenForKeys(acts, new Set(["j", "k"]));
}
