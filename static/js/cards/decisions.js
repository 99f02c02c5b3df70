// Decisions through the REST API. Without this script, the cards are plain forms.
import { announce } from "../page/announce.js";
import { localTime } from "../page/times.js";
import { fetchCard, offerNewCard, refreshCard, refreshIfChanged } from "./cards.js";
import { lock, showNote, unlock } from "./lock.js";
import { isByPointer, isInert } from "./moves.js";
import { isWarnedOfVotes, seenApprovals } from "./votes.js";
import { csrfToken, post } from "../page/requests.js";

// The person who has taken the card, unless that is this reader.
function findTaker(card) {
  const name = card.querySelector("[data-claimed-by]")?.dataset.claimedBy ?? "";
  return name === document.body.dataset.user ? "" : name;
}

// The kinds of the marks that the card shows.
const findSeenMarks = (card) => card.querySelector("[data-seen-marks]")?.dataset.seenMarks.split(" ").filter(Boolean) ?? [];

const asSentence = (text) => (text.endsWith(".") ? text : `${text}.`);

// The same action on the same card keeps its id, so that sending it again does not make a second decision.
function decisionId(card, action) {
  card.dataset[`${action}Id`] ??= crypto.randomUUID?.() ?? "";
  return card.dataset[`${action}Id`];
}

function buildBody(form, card, submitter) {
  const field = (name) => form.elements.namedItem(name)?.value ?? "";
  const decision = { digest: card.dataset.digest, decision_id: decisionId(card, form.dataset.action) };
  switch (form.dataset.action) {
    case "approve":
      return { ...decision, grace_s: Number(form.dataset.grace), confirm: field("confirm"), despite_claim_of: findTaker(card), seen_approvals: seenApprovals(card), seen_marks: findSeenMarks(card) };
    case "dismiss":
      return { ...decision, despite_claim_of: findTaker(card) };
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

function describeProblem({ data, detail }) {
  const when = data.decided_at ? `, ${localTime(data.decided_at)}` : "";
  return `Couldn’t do that: ${asSentence(detail + when)}`;
}

async function decide(form, card, submitter) {
  const body = buildBody(form, card, submitter);
  card.setAttribute("aria-busy", "true");
  lock(card);
  const outcome = await post(form.dataset.api, body);
  if (outcome.status === 0) {
    reopen(card, asSentence(outcome.detail));
    return;
  }
  try {
    await showOutcome(outcome, form, card, body);
  } catch {
    showNote(card, `${outcome.ok ? "Done" : "Couldn’t do that"}. Reload the page to see the card as it is now.`);
    card.removeAttribute("aria-busy");
  }
}

async function showOutcome(outcome, form, card, body) {
  const { ok, status, data, detail } = outcome;
  if (ok) {
    if (form.dataset.action === "approve" && data.status === "pending") {
      await showVote(card, form, data.needs);
      return;
    }
    document.querySelectorAll(".notice[role]").forEach((notice) => notice.remove());
    card.querySelectorAll("form").forEach((one) => one.reset()); // what was typed has been sent
    const decided = new CustomEvent("card-decided", { bubbles: true, cancelable: true, detail: { form, body } });
    if (card.dispatchEvent(decided)) {
      await refreshCard(card, form.dataset.action === "undo");
    } // otherwise the page shows the next card
  } else if (status === 412 || data.approval_status === "superseded") {
    offerNewCard(card);
  } else if (status === 409 || status === 410) {
    showNote(card, describeProblem(outcome));
    showNote((await refreshCard(card, false)) ?? card, describeProblem(outcome));
  } else if (status >= 500) {
    reopen(card, asSentence(detail));
  } else {
    unlock(card);
    showNote(card, describeProblem(outcome));
  }
}

// More people must approve the card. The inbox moves on to the next one; elsewhere the card shows what it still needs.
async function showVote(card, form, needs) {
  const voted = new CustomEvent("card-voted", { bubbles: true, cancelable: true, detail: { form, needs } });
  if (card.dispatchEvent(voted)) {
    const text = `Your approval counts. Still needed: ${asSentence(needs)}`;
    card.querySelectorAll("form").forEach((one) => one.reset());
    showNote((await refreshCard(card, false)) ?? card, text);
  }
}

// A decision without a response may have arrived all the same, and its event may have come while the card was locked.
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

// Warns once before the reader decides a card that another person has taken.
function isWarnedOfTaker(form, card) {
  const taker = ["approve", "deny", "dismiss"].includes(form.dataset.action) ? findTaker(card) : "";
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
  if (isWarnedOfTaker(form, card) && isWarnedOfVotes(form, card)) {
    decide(form, card, event.submitter);
  }
});
