// Shows who else is looking at the same card. Each page repeats what it shows, so that the others forget a closed page.
import { paneCard } from "./pane.js";

const REPEAT_MS = 10_000;
const FORGET_MS = 25_000;
const PAUSE_MS = 1_100;
const place = document.querySelector("[data-presence]");
const viewers = new Map(); // by username: the card that they look at, and when they said so

// The server takes one message a second from each page: the last card of several is told after that time.
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

function show() {
  const card = paneCard()?.dataset.card;
  const now = performance.now();
  const names = [...viewers].filter(([, seen]) => seen.card === card && now - seen.at < FORGET_MS).map(([name]) => name);
  const text = names.length ? `${names.join(", ")} ${names.length === 1 ? "is" : "are"} looking at this card.` : "";
  if (place.textContent !== text) {
    place.textContent = text;
    place.hidden = !text;
  }
}

export function startPresence() {
  document.addEventListener("somebody-looks", ({ detail: { user, card } }) => {
    const isNew = !viewers.has(user);
    if (user !== document.body.dataset.user) {
      viewers.set(user, { card, at: performance.now() });
      show();
      if (isNew) {
        tell(); // whoever has just come learns of this reader at once
      }
    }
  });
  document.addEventListener("card-selected", () => {
    tell();
    show();
  });
  setInterval(() => {
    tell();
    show();
  }, REPEAT_MS);
  setTimeout(tell, 1000); // once the socket is open
}
