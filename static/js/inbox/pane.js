// The card of the selected row. The next cards are fetched early, so that a decision leads to the next one at once.
import { prepareCards } from "../cards/cards.js";
import { elementsFrom } from "../page/fragments.js";
import { countDown, localTimes } from "../page/times.js";

const AHEAD = 2;
const pane = document.querySelector("[data-pane]");
const fetched = new Map(); // the promised HTML of each card by its id

export const paneCard = () => pane.querySelector(":scope > [data-card]");

function fetchCardOf(row) {
  const id = row.dataset.row;
  if (!fetched.has(id)) {
    const answer = fetch(row.dataset.cardAddress, { headers: { Accept: "text/html" }, credentials: "same-origin" });
    fetched.set(id, answer.then((response) => (response.ok && !response.redirected ? response.text() : Promise.reject(response))));
    fetched.get(id).catch(() => fetched.delete(id));
  }
  return fetched.get(id);
}

export function fetchAhead(rows) {
  rows.slice(0, AHEAD).forEach((row) => fetchCardOf(row).catch(() => {}));
}

export function forget(id) {
  fetched.delete(id);
}

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
  pane.querySelector("[data-nothing]").before(card);
  if (hadFocus) {
    card.focus({ preventScroll: true });
  }
  pane.scrollTop = 0;
  localTimes(card);
  countDown(card);
  prepareCards();
}

// Shows that nothing waits, with the figures that the server has now.
export function showNothing(nothing) {
  paneCard()?.remove();
  const place = pane.querySelector("[data-nothing]");
  if (nothing) {
    place.replaceChildren(...document.adoptNode(nothing).childNodes);
  }
  place.hidden = false;
}

export function hideNothing() {
  pane.querySelector("[data-nothing]").hidden = true;
}
