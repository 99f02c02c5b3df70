// People on a card: the list shows who has taken each one, and the pane who else looks at its card. Each page keeps
// reporting the card that it shows, so that the others can forget a closed page.
import { post } from "../page/requests.js";
import { allRows } from "./rows.js";
import { paneCard, refreshWarnings } from "./pane.js";
import { showToast } from "./toasts.js";

const REPEAT_MS = 10_000;
const FORGET_MS = 25_000;
const PAUSE_MS = 1_100;
const presence = document.querySelector("[data-presence]");
const viewers = new Map(); // by username: the card that the person looks at, and the time of their last report
let claims = null; // after the first message: each with the call, the username, and the end in seconds

function showTakers() {
  if (!claims) {
    return; // until the first message, the labels are those of the server
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
  const minutes = document.querySelector("[data-take-button]")?.dataset.takeButton;
  const { ok, detail } = await post(`/approvals/${row.dataset.row}/take/`);
  showToast(ok ? `Yours for ${minutes} minutes. Others are warned.` : `Couldn’t take it: ${detail}.`);
}

// The server accepts one message a second from each page; if several cards follow sooner, the last one is reported
// after that time.
let toldAt = -PAUSE_MS;
let later = 0;

function tell() {
  const card = paneCard()?.dataset.card;
  const left = toldAt + PAUSE_MS - performance.now();
  clearTimeout(later);
  if (left > 0) {
    later = setTimeout(tell, left);
  } else if (card && !document.hidden) {
    toldAt = performance.now();
    document.dispatchEvent(new CustomEvent("looking-at", { detail: { card } }));
  }
}

function showViewers() {
  const card = paneCard()?.dataset.card;
  const now = performance.now();
  const names = [...viewers].filter(([, seen]) => seen.card === card && now - seen.at < FORGET_MS).map(([name]) => name);
  const text = names.length ? `${names.join(", ")} ${names.length === 1 ? "is" : "are"} looking at this card.` : "";
  if (presence.textContent !== text) {
    presence.textContent = text;
    presence.hidden = !text;
  }
}

export function startAttention() {
  document.addEventListener("inbox-changed", ({ detail }) => {
    if (detail.claims) {
      claims = detail.claims;
      setTimeout(showTakers); // after the new rows are there
    }
  });
  document.addEventListener("somebody-looks", ({ detail: { user, card } }) => {
    const isNew = !viewers.has(user);
    if (user !== document.body.dataset.user) {
      viewers.set(user, { card, at: performance.now() });
      showViewers();
      if (isNew) {
        tell(); // so that a new viewer learns about this reader at once
      }
    }
  });
  document.addEventListener("card-selected", () => {
    tell();
    showViewers();
  });
  setInterval(() => {
    showTakers();
    tell();
    showViewers();
  }, REPEAT_MS);
  setTimeout(tell, 1000); // once the socket is open
}
