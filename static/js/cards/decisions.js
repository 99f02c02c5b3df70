// Decisions through the REST API. Without this script, the cards are plain forms.
import { announce } from "../page/announce.js";
import { localTime } from "../page/times.js";
import { fetchCard, offerNewCard, refreshCard, refreshIfChanged } from "./cards.js";
import { lock, showNote, unlock } from "./lock.js";
import { isByPointer, isInert } from "./moves.js";

const csrfToken = () => document.querySelector('meta[name="csrf-token"]').content;
// The person who has taken the card, unless that is this reader.
function findTaker(card) {
  const name = card.querySelector("[data-claimed-by]")?.dataset.claimedBy ?? "";
  return name === document.body.dataset.user ? "" : name;
}

const asSentence = (text) => (text.endsWith(".") ? text : `${text}.`);

// The same action on the same card keeps its id, so that sending it again is no second decision.
function decisionId(card, action) {
  card.dataset[`${action}Id`] ??= crypto.randomUUID?.() ?? "";
  return card.dataset[`${action}Id`];
}

function buildBody(form, card, submitter) {
  const field = (name) => form.elements.namedItem(name)?.value ?? "";
  const decision = { digest: card.dataset.digest, decision_id: decisionId(card, form.dataset.action) };
  switch (form.dataset.action) {
    case "approve":
      return { ...decision, grace_s: Number(form.dataset.grace), confirm: field("confirm"), despite_claim_of: findTaker(card) };
    case "deny":
      return { ...decision, reason: [submitter?.value, field("reason")].filter(Boolean).join(". "), despite_claim_of: findTaker(card) };
    case "undo":
      return {};
    case "answer":
      return { text: submitter?.name === "choice" ? submitter.value : field("text").trim(), decision_id: decision.decision_id };
    default:
      return { outcome: submitter?.value ?? "", reason: field("reason") };
  }
}

export async function post(address, body) {
  return fetch(address, {
    method: "POST",
    credentials: "same-origin",
    headers: { "Content-Type": "application/json", "X-CSRFToken": csrfToken() },
    body: JSON.stringify(body),
  });
}

function describeProblem(problem) {
  const when = problem.decided_at ? `, ${localTime(problem.decided_at)}` : "";
  return `Couldn’t do that: ${asSentence(problem.detail + when)}`;
}

async function decide(form, card, submitter) {
  const body = buildBody(form, card, submitter);
  card.setAttribute("aria-busy", "true");
  lock(card);
  let response;
  try {
    response = await post(form.dataset.api, body);
  } catch {
    reopen(card, "Gadget could not be reached.");
    return;
  }
  try {
    await showOutcome(response, form, card, body);
  } catch {
    showNote(card, `${response.ok ? "Done" : "Couldn’t do that"}. Reload the page to see the card as it is now.`);
    card.removeAttribute("aria-busy");
  }
}

async function showOutcome(response, form, card, body) {
  if (response.ok) {
    const answer = await response.json().catch(() => ({}));
    if (form.dataset.action === "approve" && answer.status === "pending") {
      await refreshCard(card, false);
      announce(`Your approval counts. Still needed: ${asSentence(answer.needs)}`);
      return;
    }
    document.querySelectorAll(".notice[role]").forEach((notice) => notice.remove());
    const decided = new CustomEvent("card-decided", { bubbles: true, cancelable: true, detail: { form, body } });
    if (card.dispatchEvent(decided)) {
      await refreshCard(card, form.dataset.action === "undo");
    } // otherwise the page shows the next card
    return;
  }
  const problem = await response.json().catch(() => ({ detail: `The server answered ${response.status}` }));
  if (response.status === 412 || problem.approval_status === "superseded") {
    offerNewCard(card);
  } else if (response.status === 409 || response.status === 410) {
    showNote(card, describeProblem(problem));
    await refreshCard(card, false);
    announce(describeProblem(problem));
  } else if (response.status >= 500) {
    reopen(card, asSentence(problem.detail));
  } else {
    unlock(card);
    showNote(card, describeProblem(problem));
  }
}

// A decision without an answer may have arrived all the same, and its event may have come while the card was locked.
function reopen(card, why) {
  unlock(card);
  showNote(card, `${why} Your decision may have arrived. If the card does not show it soon, press again.`);
  checkArrival(card).catch((error) => console.warn("The card could not be refreshed:", error.message));
}

async function checkArrival(card) {
  if ("open" in card.dataset) {
    await refreshIfChanged(card, "This card has changed since it was shown. ");
    return;
  }
  const newest = await fetchCard(card, true);
  if (newest && "open" in newest.dataset) {
    await refreshCard(card, true);
  }
}

function addToken(form) {
  if (!form.elements.namedItem("csrfmiddlewaretoken")) {
    form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "csrfmiddlewaretoken", value: csrfToken() }));
  }
}

// Warns once before a card is decided that another person has taken.
function isWarnedOfTaker(form, card) {
  const taker = ["approve", "deny"].includes(form.dataset.action) ? findTaker(card) : "";
  const isWarned = !taker || card.dataset.warnedOf === taker;
  if (!isWarned) {
    card.dataset.warnedOf = taker;
    showNote(card, `${taker} has taken this card. Press again to decide it anyway.`);
  }
  return isWarned;
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  const card = form.closest("[data-card]");
  if (!card || !form.dataset.action) {
    return;
  }
  if (isInert(card) && isByPointer()) {
    event.preventDefault();
    showNote(card, "The list just moved. Check the card and press again.");
    return;
  }
  if (card.hasAttribute("data-locked")) {
    event.preventDefault();
    return;
  }
  if (form.dataset.action === "edit" || form.dataset.action === "release") {
    addToken(form);
    return;
  }
  event.preventDefault();
  if (isWarnedOfTaker(form, card)) {
    decide(form, card, event.submitter);
  }
});
