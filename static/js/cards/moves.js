// A card that has just appeared or moved takes no click for 0.4 s: the click was meant for what was there before.
const INERT_MS = 400;
const places = new WeakMap();
const movedAt = new WeakMap();

const topOf = (element) => Math.round(element.getBoundingClientRect().top + scrollY);

export function noteMoves() {
  for (const card of document.querySelectorAll("[data-card]")) {
    const top = topOf(card);
    if (places.get(card) !== top) {
      places.set(card, top);
      movedAt.set(card, performance.now());
    }
  }
}

export function isInert(card) {
  return performance.now() - (movedAt.get(card) ?? performance.now()) < INERT_MS;
}

let pressedAt = -INERT_MS;

// Only a pointer can hit what has just moved under it; a key acts on the selected card.
export const isByPointer = () => performance.now() - pressedAt < INERT_MS;

document.addEventListener("click", (event) => event.detail > 0 && (pressedAt = performance.now()), { capture: true });
document.addEventListener("keydown", () => (pressedAt = -INERT_MS), { capture: true });

new ResizeObserver(noteMoves).observe(document.body);
