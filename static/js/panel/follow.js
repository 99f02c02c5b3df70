// The page follows the newest line until the reader scrolls up; a button brings them back. A live run opens at its newest
// line. It stops at the first card that needs a decision, and never scrolls away from a card that is being decided, or from a
// text that is being selected.
import { hasEnded } from "./parts.js";

const NEAR_PX = 48;
const GAP_PX = 16;
const MAX_FRAMES = 10;
const OPEN_CARD = "[data-card][data-open]";

export class Follower {
  constructor(panel) {
    this.panel = panel;
    this.bar = document.querySelector(".run-bar");
    this.button = this.bar.querySelector("[data-newest]");
    this.lastTop = scrollY;
    this.shownCards = new WeakSet(this.findOpenCards());
    this.isFollowing = this.isNewestInView();
    addEventListener("scroll", () => this.noteScroll(), { passive: true });
    addEventListener("resize", () => this.showButton(), { passive: true });
    this.button.addEventListener("click", () => this.goToNewest());
    this.showButton();
    if (this.opensAtNewest()) {
      this.isFollowing = true;
      this.keepUp();
    }
  }

  // False if a card waits, if the address names a place, or if the browser brings the reader back to an earlier one.
  opensAtNewest() {
    const isNew = performance.getEntriesByType("navigation")[0].type === "navigate";
    return isNew && !hasEnded() && location.hash === "" && this.findOpenCards().length === 0;
  }

  // True if the newest line ends above the bar, or if the reader has already scrolled past it.
  isNewestInView() {
    return this.panel.getBoundingClientRect().bottom <= innerHeight - this.bar.offsetHeight + NEAR_PX;
  }

  noteScroll() {
    if (this.isNewestInView()) {
      this.isFollowing = true;
    } else if (scrollY < this.lastTop) {
      this.isFollowing = false;
    }
    this.lastTop = scrollY;
    this.showButton();
  }

  // Scrolls once for all lines that have arrived or grown, after they were drawn, so that nothing else moves meanwhile.
  // If lines arrive in every frame, it waits for at most MAX_FRAMES frames.
  keepUp() {
    this.isDrawn = false;
    this.frame ??= requestAnimationFrame(() => this.followWhenDrawn(MAX_FRAMES));
  }

  followWhenDrawn(framesLeft) {
    if (!this.isDrawn && framesLeft > 0) {
      this.isDrawn = true;
      this.frame = requestAnimationFrame(() => this.followWhenDrawn(framesLeft - 1));
      return;
    }
    this.frame = undefined;
    const newCard = this.takeNewCard();
    if (this.isFollowing && !this.isReaderBusy(newCard)) {
      this.scrollTo(newCard);
    }
    this.showButton();
  }

  findOpenCards() {
    return [...this.panel.querySelectorAll(OPEN_CARD)];
  }

  // Returns the first open card if it has just arrived.
  takeNewCard() {
    const [card] = this.findOpenCards();
    if (!card || this.shownCards.has(card)) {
      return null;
    }
    this.shownCards.add(card);
    return card;
  }

  scrollTo(newCard) {
    if (newCard) {
      newCard.scrollIntoView({ block: "nearest" });
      this.lastTop = scrollY;
    } else {
      this.scrollToNewest();
    }
  }

  goToNewest() {
    const line = this.panel.lastElementChild;
    this.isFollowing = true;
    line.tabIndex = -1;
    line.focus({ preventScroll: true });
    this.scrollToNewest();
    this.showButton();
  }

  // Down only, until the newest line ends above the bar.
  scrollToNewest() {
    const hidden = this.panel.getBoundingClientRect().bottom - (innerHeight - this.bar.offsetHeight - GAP_PX);
    if (hidden > 0) {
      scrollBy({ top: hidden, behavior: "instant" });
    }
    this.lastTop = scrollY;
  }

  isReaderBusy(newCard) {
    if (!getSelection().isCollapsed || document.activeElement.matches("input, textarea, select")) {
      return true;
    }
    return this.findOpenCards().some((card) => card !== newCard && isInView(card));
  }

  showButton() {
    this.button.hidden = hasEnded() || this.isNewestInView();
  }
}

function isInView(card) {
  const { top, bottom } = card.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
}
