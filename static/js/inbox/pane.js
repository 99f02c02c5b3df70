// The card of the selected row. The next cards are fetched early, so that a decision leads to the next one at once.
import { prepareCards, showOwnForms } from "../cards/cards.js";
import { noteMoves } from "../cards/moves.js";
import { announce } from "../page/announce.js";
import { elementsFrom, fetchPage, fetchText } from "../page/fragments.js";
import { readSpoken } from "../page/spoken_text.js";
import { countDown, localTimes } from "../page/times.js";
import { readTyped, writeTyped } from "../page/typed_texts.js";

const AHEAD = 2;
const FRESH_MS = 5_000; // a card that was fetched earlier may lack warnings that came up since
const pane = document.querySelector("[data-pane]");
const typedOn = new Map(); // by card id, the texts that were typed there before another card was shown
const fetched = new Map(); // by card id, the promise of its HTML, and the time of the request

export const paneCard = () => pane.querySelector(":scope > [data-card]");

function fetchCardOf(row) {
  const id = row.dataset.row;
  const known = fetched.get(id);
  if (known && performance.now() - known.at < FRESH_MS) {
    return known.html;
  }
  const html = fetchText(row.dataset.cardAddress);
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

let isFocusDue = false; // the card that made room for the next one had the focus

// Shows the card of this row; does nothing if another row was selected while it was fetched. Until it arrives, the
// previous card is hidden and accepts no input.
export async function showCardOf(row, isStillSelected) {
  const shown = paneCard();
  if (shown?.dataset.card === row.dataset.row && "open" in shown.dataset) {
    setLoading(false);
    return;
  }
  isFocusDue ||= Boolean(shown?.contains(document.activeElement));
  setLoading(true);
  const html = await fetchCardOf(row);
  if (!isStillSelected()) {
    return;
  }
  forget(row.dataset.row);
  const card = elementsFrom(html).find((one) => one.matches("[data-card]"));
  if (!card) {
    throw new Error(`card ${row.dataset.row} did not come`);
  }
  const focused = document.activeElement; // it leaves the hidden card only when the browser draws again
  const hadFocus = isFocusDue && (focused === document.body || Boolean(paneCard()?.contains(focused)));
  setLoading(false); // or the card could not take the focus
  showCard(card, hadFocus);
  isFocusDue = false;
}

function setLoading(isLoading) {
  pane.toggleAttribute("data-loading", isLoading);
  pane.querySelector("[data-load-note]").hidden = !isLoading;
  pane.querySelector("[data-load-failed]").hidden = true;
  const shown = paneCard();
  if (shown) {
    shown.inert = isLoading;
  }
}

// The selected card could not be fetched: the reader can try again.
export function showFailure(retry) {
  paneCard()?.remove();
  setLoading(false);
  const place = pane.querySelector("[data-load-failed]");
  place.hidden = false;
  place.querySelector("button").onclick = retry;
  announce(place.querySelector("[data-load-problem]").textContent);
}

function showCard(card, hadFocus) {
  const before = paneCard();
  if (before && "open" in before.dataset) {
    typedOn.set(before.dataset.card, readTyped(before));
  }
  before?.remove();
  pane.querySelector("[data-snooze-foot]").before(card);
  if (hadFocus) {
    card.focus({ preventScroll: true });
  }
  pane.scrollTop = 0;
  localTimes(card);
  countDown(card);
  prepareCards();
  writeTyped(card, typedOn.get(card.dataset.card) ?? []);
  typedOn.delete(card.dataset.card);
}

// Shows that no card waits, with the server's current figures; returns the text.
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
      announce(`This card’s warnings have changed. ${readSpoken(shown)}`);
    }
  }
}

export function hideNothing() {
  pane.querySelector("[data-nothing]").hidden = true;
}
