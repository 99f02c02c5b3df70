// Votes of other people on an open card: whenever one is cast or withdrawn, the card shows the approvals that it still
// needs, and the next press warns, because it may now give the last one.
import { announce } from "../page/announce.js";
import { elementsFrom } from "../page/fragments.js";
import { readSpoken } from "../page/spoken_text.js";
import { fetchCard, prepareForReader } from "./cards.js";
import { showNote } from "./lock.js";

export const seenApprovals = (card) => card.querySelector("[data-standing]")?.dataset.approvedBy ?? "";

const listNames = (text) => text.split(", ").filter(Boolean);

// Names the other people who have approved or withdrawn; empty if there are none.
function describeChange(before, after) {
  const isOther = (name) => name.split(" for ")[0] !== document.body.dataset.user;
  const [known, current] = [listNames(before), listNames(after)];
  const added = current.filter((name) => isOther(name) && !known.includes(name));
  const gone = known.filter((name) => isOther(name) && !current.includes(name));
  const verbs = [[added, "approved this"], [gone, "withdrew the approval"]].filter(([names]) => names.length);
  return verbs.map(([names, did]) => `${names.join(" and ")} ${did}`).join(", ");
}

const read = (standing) => `${standing.dataset.approvedBy} ${standing.textContent.replace(/\s+/g, " ")}`;

// Brings the approvals of a card up to date. Everything else on it is sealed by its digest.
async function refreshVotes(card) {
  const fresh = await fetchCard(card);
  const standing = card.querySelector("[data-standing]");
  const next = fresh?.querySelector("[data-standing]");
  const isSame = fresh && "open" in fresh.dataset && fresh.dataset.digest === card.dataset.digest;
  if (!isSame || !standing || !next || !card.isConnected || read(standing) === read(next)) {
    return;
  }
  const change = describeChange(standing.dataset.approvedBy, next.dataset.approvedBy);
  standing.dataset.approvedBy = next.dataset.approvedBy;
  standing.replaceChildren(...elementsFrom(next.innerHTML));
  card.dataset.barredUsers = fresh.dataset.barredUsers ?? "";
  prepareForReader(card);
  if (change && !("isBarred" in card.dataset)) {
    card.dataset.unseenVotes = change;
  }
  if (change) {
    announce(`${change}. ${readSpoken(standing)}`);
  }
}

// Warns once before the reader decides a card on which others have voted since it was shown.
export function isWarnedOfVotes(form, card) {
  const change = ["approve", "deny"].includes(form.dataset.action) ? card.dataset.unseenVotes : "";
  if (change) {
    delete card.dataset.unseenVotes;
    showNote(card, `${change} meanwhile. Check what is still needed, and press again.`);
  }
  return !change;
}

// After a lost connection, an event without a card's id causes all cards to be refreshed.
document.addEventListener("card-changed", ({ detail: { approval_id: id, approved_by: names } }) => {
  for (const card of document.querySelectorAll("[data-card][data-open]:has([data-standing])")) {
    if (id === undefined || (names && card.dataset.card === id)) {
      refreshVotes(card).catch((error) => console.warn("The approvals could not be refreshed:", error.message));
    }
  }
});
