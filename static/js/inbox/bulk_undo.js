// The undo of a bulk approval: one request withholds all its calls; the number of calls that had already started is
// shown once it is known.
import { post } from "../page/requests.js";
import { showProgress, showToast } from "./toasts.js";

const CHECK_MS = 700;
const MAX_CHECKS = 600;
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const are = (count) => (count === 1 ? "is" : "are");

function describe({ cards, started, waiting_again: waiting, left, votes }) {
  const had = started ? `${started} had already started${left ? " so far" : ""}. ` : "";
  const rest = left ? ` ${left} more are still coming back and will not start.` : "";
  const again = cards ? `${waiting} ${are(waiting)} waiting again.` : "";
  const withdrawn = votes ? ` ${votes} ${votes === 1 ? "vote" : "votes"} withdrawn.` : "";
  return `${had}${again}${rest}${withdrawn}`;
}

export async function undoBulk(bulkId) {
  const { ok, data, detail } = await post(`/api/approvals/bulks/${bulkId}/undo`);
  if (!ok) {
    showToast(`Couldn’t undo: ${detail}.`);
    return;
  }
  const undone = data.cards + data.votes;
  const progress = showProgress(`Undone: ${undone} ${undone === 1 ? "card" : "cards"}. No further calls will start.`);
  const last = await follow(`/api/approvals/bulks/${bulkId}`, data, (state) => progress.tell(`Undoing: ${describe(state)}`));
  progress.end();
  showToast(`Undone: ${describe(last)}`, { staysFor: 15 });
}

// Polls the state until every card is renewed; a failed request is repeated.
async function follow(address, first, tell) {
  let state = first;
  for (let check = 0; check < MAX_CHECKS && state.left > 0; check += 1) {
    await wait(CHECK_MS);
    state = await fetch(address, { headers: { Accept: "application/json" } })
      .then((response) => (response.ok ? response.json() : state))
      .catch(() => state);
    tell(state);
  }
  return state;
}
