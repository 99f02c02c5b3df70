// Claims: a person takes a card for a while. The list shows by whom each card is taken.
import { post } from "../page/requests.js";
import { allRows } from "./rows.js";
import { paneCard, refreshWarnings } from "./pane.js";
import { showToast } from "./toasts.js";

const CHECK_MS = 10_000;
let claims = null; // once a message came: each with the call, the username, and the end in seconds

function show() {
  if (!claims) {
    return; // the labels are those of the server
  }
  const now = Date.now() / 1000;
  const takers = new Map(claims.filter(({ until }) => until > now).map(({ call, by }) => [call, by]));
  for (const row of allRows()) {
    const place = row.querySelector("[data-taken]");
    const by = takers.get(row.dataset.order) ?? "";
    if (place.dataset.taken === by) {
      continue;
    }
    place.dataset.taken = by;
    place.textContent = by && `taken by ${by} · `;
    if (row.dataset.row === paneCard()?.dataset.card) {
      refreshWarnings().catch((error) => console.warn("The claim could not be shown:", error.message));
    }
  }
}

// Takes the card of this row for its reader; the list then shows it to everybody.
export async function take(row) {
  const { ok, detail } = await post(`/approvals/${row.dataset.row}/take/`);
  showToast(ok ? "Yours for 15 minutes. Others are warned." : `Couldn’t take it: ${detail}.`);
}

export function startClaims() {
  document.addEventListener("inbox-changed", ({ detail }) => {
    if (detail.claims) {
      claims = detail.claims;
      setTimeout(show); // after the new rows are there
    }
  });
  setInterval(show, CHECK_MS);
}
