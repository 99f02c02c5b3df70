// The lines of the panel. A line replaces the earlier one of its slot, in its place or, with `data-moves-to-end`, at the
// end. The cost of a line does not depend on the length of the panel.
import { offerNewCard, prepareCards, takeTyped } from "../cards/cards.js";
import { noteMoves } from "../cards/moves.js";
import { countDown, localTimes } from "../page/times.js";

const OPEN_CARD = "[data-card][data-open]";

export class Lines {
  constructor(panel) {
    this.panel = panel;
    this.bySlot = new Map();
    this.placeOf = new WeakMap(); // the position of each line, in the order of arrival
    this.places = 0;
    this.lastCard = -1; // the position of the last line with a card
    this.heldBack = new Map(); // by slot, the line with a new card that the reader has not opened yet
    panel.addEventListener("card-shown", (event) => this.showAround(event.target));
    for (const line of panel.children) {
      this.remember(line, this.places++);
    }
  }

  find(slot) {
    return this.bySlot.get(slot);
  }

  remember(line, place) {
    if (line.dataset.slot) {
      this.bySlot.set(line.dataset.slot, line);
    }
    this.placeOf.set(line, place);
    if (line.querySelector("[data-card]")) {
      this.lastCard = Math.max(this.lastCard, place);
    }
  }

  remove(slot) {
    const line = this.find(slot);
    if (line) {
      this.bySlot.delete(slot);
      line.remove();
      this.noteMove(line);
    }
  }

  // Returns false if the line was held back because the reader may be reading the card that it would replace. A card
  // about an unknown outcome replaces the decided card at once.
  place(line) {
    const { slot } = line.dataset;
    const shown = this.find(slot)?.querySelector(OPEN_CARD);
    const next = line.querySelector(OPEN_CARD);
    if (shown && next && shown.dataset.card !== next.dataset.card && !next.matches(".unknown")) {
      offerNewCard(shown);
      this.heldBack.set(slot, line);
      return false;
    }
    this.heldBack.delete(slot);
    localTimes(line);
    if ("movesToEnd" in line.dataset) {
      this.remove(slot);
    }
    const earlier = this.find(slot);
    const [card, current] = [earlier, line].map((one) => one?.querySelector("[data-card]"));
    const keepTyped = card && current ? takeTyped(card, current) : () => {};
    if (earlier) {
      replace(earlier, line);
      this.remember(line, this.placeOf.get(earlier));
    } else {
      this.panel.append(line);
      this.remember(line, this.places++);
    }
    countDown(line);
    if (line.querySelector("[data-card]")) {
      prepareCards();
    } else {
      this.noteMove(line);
    }
    keepTyped();
    return true;
  }

  // Shows the line that was held back, with the card that the reader has just opened.
  showAround(card) {
    const earlier = card.closest("[data-slot]");
    const line = this.heldBack.get(earlier.dataset.slot);
    const own = line?.querySelector("[data-card]");
    if (!own || Number(own.dataset.card) < Number(card.dataset.card)) {
      return;
    }
    if (own.dataset.card === card.dataset.card) {
      own.replaceWith(card);
    }
    this.place(line);
  }

  // Cards after this line may have moved, so they ignore clicks for a moment; cards before it have not.
  noteMove(line) {
    if (this.lastCard > (this.placeOf.get(line) ?? -1)) {
      noteMoves();
    }
  }
}

// Keeps unfolded details open, the focus in the line or its card, and the spinner turning smoothly.
function replace(earlier, line) {
  const wasOpen = Boolean(earlier.querySelector(".unfold[open]"));
  const hadFocus = earlier.contains(document.activeElement);
  const wasInCard = Boolean(document.activeElement.closest("[data-card]"));
  earlier.replaceWith(line);
  line.querySelector(".unfold")?.toggleAttribute("open", wasOpen);
  if (hadFocus) {
    const place = (wasInCard && line.querySelector("[data-card]")) || line.querySelector(".unfold > summary");
    place?.focus({ preventScroll: true });
  }
  const spinner = line.querySelector(".spinner");
  for (const animation of spinner?.getAnimations() ?? []) {
    animation.startTime = 0;
  }
}
