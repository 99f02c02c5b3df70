// The card of the selected row. The next cards are fetched early, so that a decision leads to the next one at once.
import { prepareCards, showOwnForms } from "../cards/cards.js";
import { noteMoves } from "../cards/moves.js";
import { announce } from "../page/announce.js";
import { elementsFrom, fetchPage } from "../page/fragments.js";
import { countDown, localTimes } from "../page/times.js";

const AHEAD = 2;
const FRESH_MS = 5_000; // a card that was fetched earlier may lack warnings that came up since
const pane = document.querySelector("[data-pane]");
const fetched = new Map(); // by its id, the promised HTML of each card, and when it was asked for

export const paneCard = () => pane.querySelector(":scope > [data-card]");

function fetchCardOf(row) {
  const id = row.dataset.row;
  const known = fetched.get(id);
  if (known && performance.now() - known.at < FRESH_MS) {
    return known.html;
  }
  const answer = fetch(row.dataset.cardAddress, { headers: { Accept: "text/html" }, credentials: "same-origin" });
  const html = answer.then((response) => (response.ok && !response.redirected ? response.text() : Promise.reject(response)));
  fetched.set(id, { html, at: performance.now() });
  html.catch(() => fetched.delete(id));
  return html;
}

export function fetchAhead(rows) {
  rows.slice(0, AHEAD).forEach((row) => fetchCardOf(row).catch(() => {}));
}

export function forget(id) {
  fetched.delete(id);
}

export const fetchedIds = () => [...fetched.keys()];

// Shows the card of this row; does nothing if another row was selected while it was fetched.
export async function showCardOf(row, isStillSelected) {
  if (paneCard()?.dataset.card === row.dataset.row && "open" in (paneCard()?.dataset ?? {})) {
    return;
  }
  const html = await fetchCardOf(row);
  if (!isStillSelected()) {
    return;
  }
  forget(row.dataset.row);
  const card = elementsFrom(html).find((one) => one.matches("[data-card]"));
  if (card) {
    showCard(card);
  }
}

function showCard(card) {
  const hadFocus = paneCard()?.contains(document.activeElement);
  paneCard()?.remove();
  pane.querySelector("[data-snooze-foot]").before(card);
  if (hadFocus) {
    card.focus({ preventScroll: true });
  }
  pane.scrollTop = 0;
  localTimes(card);
  countDown(card);
  prepareCards();
}

// Shows that nothing waits, with the figures that the server has now; returns what it says.
export function showNothing(nothing, hadFocus) {
  const isFocused = hadFocus || paneCard()?.contains(document.activeElement);
  paneCard()?.remove();
  const place = pane.querySelector("[data-nothing]");
  if (nothing) {
    place.replaceChildren(...document.adoptNode(nothing).childNodes);
  }
  place.hidden = false;
  if (isFocused) {
    place.focus({ preventScroll: true });
  }
  return place.querySelector("[data-nothing-text]").textContent;
}

// Brings the warnings of the shown card up to date. Everything else on it is sealed by its digest.
export async function refreshWarnings() {
  const card = paneCard();
  if (!card || !("open" in card.dataset) || "locked" in card.dataset) {
    return;
  }
  const page = await fetchPage(card.dataset.url);
  const fresh = page.querySelector(`[data-digest="${CSS.escape(card.dataset.digest)}"][data-open] [data-surroundings]`);
  const shown = card.querySelector("[data-surroundings]");
  if (fresh && card.isConnected && shown.innerHTML !== fresh.innerHTML) {
    const known = shown.textContent;
    shown.replaceChildren(...elementsFrom(fresh.innerHTML));
    localTimes(shown);
    showOwnForms(card);
    noteMoves();
    if (known.trim() !== fresh.textContent.trim()) {
      announce(`This card’s warnings have changed. ${shown.innerText.replace(/\s+/g, " ").trim()}`);
    }
  }
}

export function hideNothing() {
  pane.querySelector("[data-nothing]").hidden = true;
}
