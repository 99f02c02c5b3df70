// The lines of the panel by their slots: a line takes the place of the earlier one in its slot, and nothing here looks
// at more than that one line, however long the panel is. What a run waits for is told anew once a line without a slot
// stands below it, as on the page that the server draws.
import { noteMoves, offerNewCard, prepareCards } from "./cards.js";
import { countDown, localTimes } from "./times.js";

const OPEN_CARD = "[data-card][data-open]";
const WAIT = "wait";

export class Lines {
  constructor(panel) {
    this.panel = panel;
    this.bySlot = new Map();
    this.placeOf = new WeakMap(); // a line's place, counted from the first that came
    this.places = 0;
    this.lastCard = -1; // the place of the last line that has a card
    this.lastTold = -1; // the place of the last line that has no slot
    this.heldBack = new Map(); // by slot, the line whose card the reader has not asked for yet
    panel.addEventListener("card-shown", (event) => this.showAround(event.target));
    for (const line of panel.children) {
      this.remember(line);
    }
  }

  in(slot) {
    return this.bySlot.get(slot);
  }

  remember(line) {
    if (line.dataset.slot) {
      this.bySlot.set(line.dataset.slot, line);
    }
    const place = this.placeOf.get(line) ?? this.places++;
    this.placeOf.set(line, place);
    if (!line.dataset.slot) {
      this.lastTold = place;
    }
    if (line.querySelector("[data-card]")) {
      this.lastCard = Math.max(this.lastCard, place);
    }
  }

  replacedBy(line) {
    const earlier = this.in(line.dataset.slot);
    const isOver = line.dataset.slot?.startsWith(WAIT) && this.placeOf.get(earlier) < this.lastTold;
    return isOver ? undefined : earlier;
  }

  forget(line) {
    if (this.bySlot.get(line.dataset.slot) === line) {
      this.bySlot.delete(line.dataset.slot);
    }
  }

  remove(slot) {
    const line = this.in(slot);
    if (line) {
      this.forget(line);
      line.remove();
      this.moved(line);
    }
  }

  // False if the line was not shown, because somebody reads the card that it would replace. A card that asks what became
  // of the call replaces one that was decided and started.
  place(line) {
    const earlier = this.replacedBy(line);
    const read = earlier?.querySelector(OPEN_CARD);
    const asked = line.querySelector(OPEN_CARD);
    if (read && asked && read.dataset.card !== asked.dataset.card && !asked.matches(".unknown")) {
      offerNewCard(read);
      this.heldBack.set(line.dataset.slot, line);
      return false;
    }
    this.heldBack.delete(line.dataset.slot);
    localTimes(line);
    if (earlier) {
      this.placeOf.set(line, this.placeOf.get(earlier));
      replace(earlier, line);
    } else {
      this.panel.append(line);
    }
    this.remember(line);
    countDown(line);
    this.noteCards(line);
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

  noteCards(line) {
    if (line.querySelector("[data-card]")) {
      prepareCards();
    } else {
      this.moved(line);
    }
  }

  // The cards that stand after this line may have moved, and take no click for a moment; those before it have not.
  moved(line) {
    if (this.lastCard > (this.placeOf.get(line) ?? -1)) {
      noteMoves();
    }
  }
}

// What the reader has unfolded stays so, the focus stays in the line or in its card, and a spinner turns without a jerk.
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
  const turning = line.querySelector(".spinner");
  for (const animation of turning?.getAnimations() ?? []) {
    animation.startTime = 0;
  }
}
