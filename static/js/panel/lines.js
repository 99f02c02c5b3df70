// The lines of the panel by their slots: a line replaces the earlier one of its slot, in its place or, if it says so, at
// the end. Nothing here looks at more than that one line, however long the panel is.
import { offerNewCard, prepareCards } from "../cards/cards.js";
import { noteMoves } from "../cards/moves.js";
import { countDown, localTimes } from "../page/times.js";

const OPEN_CARD = "[data-card][data-open]";

export class Lines {
  constructor(panel) {
    this.panel = panel;
    this.bySlot = new Map();
    this.placeOf = new WeakMap(); // a line's place, counted from the first that came
    this.places = 0;
    this.lastCard = -1; // the place of the last line that has a card
    this.heldBack = new Map(); // by slot, the line whose card the reader has not asked for yet
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

  // Returns false if the line was not shown, because somebody reads the card that it would replace. A card that asks for
  // the outcome of a call replaces at once the one that was decided.
  place(line) {
    const { slot } = line.dataset;
    const read = this.find(slot)?.querySelector(OPEN_CARD);
    const asked = line.querySelector(OPEN_CARD);
    if (read && asked && read.dataset.card !== asked.dataset.card && !asked.matches(".unknown")) {
      offerNewCard(read);
      this.heldBack.set(slot, line);
      return false;
    }
    this.heldBack.delete(slot);
    localTimes(line);
    if ("movesToEnd" in line.dataset) {
      this.remove(slot);
    }
    const earlier = this.find(slot);
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
    return true;
  }

  // The reader has asked for the new card: its line comes with it, around the card as it was fetched.
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

  // Cards after this line may have moved, and take no click for a moment; those before it have not.
  noteMove(line) {
    if (this.lastCard > (this.placeOf.get(line) ?? -1)) {
      noteMoves();
    }
  }
}

// Details that the reader has unfolded stay open, the focus stays in the line or in its card, and a spinner turns
// smoothly.
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
