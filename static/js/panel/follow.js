// The page follows the newest line until the reader scrolls up; a button brings them back. It never scrolls away from a
// card that is being decided, or from a text that is being selected.
import { hasEnded } from "./parts.js";

const NEAR_PX = 48;

export class Follower {
  constructor(panel) {
    this.panel = panel;
    this.bar = document.querySelector(".run-bar");
    this.button = this.bar.querySelector("[data-newest]");
    this.lastTop = scrollY;
    this.isFollowing = this.isNewestInView();
    addEventListener("scroll", () => this.noteScroll(), { passive: true });
    addEventListener("resize", () => this.showButton(), { passive: true });
    this.button.addEventListener("click", () => this.goToNewest());
    this.showButton();
  }

  // The newest line ends above the bar, or the reader has already gone past it.
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

  // Lines have come, or have grown: once for all of a frame.
  keepUp() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      if (this.isFollowing && !this.isReaderBusy()) {
        this.panel.lastElementChild?.scrollIntoView({ block: "nearest" });
        this.lastTop = scrollY;
      }
      this.showButton();
    });
  }

  goToNewest() {
    const line = this.panel.lastElementChild;
    this.isFollowing = true;
    line.scrollIntoView({ block: "end" });
    line.tabIndex = -1;
    line.focus({ preventScroll: true });
    this.lastTop = scrollY;
    this.showButton();
  }

  isReaderBusy() {
    if (!getSelection().isCollapsed || document.activeElement.matches("input, textarea, select")) {
      return true;
    }
    return [...this.panel.querySelectorAll("[data-card][data-open]")].some(isInView);
  }

  showButton() {
    this.button.hidden = hasEnded() || this.isNewestInView();
  }
}

function isInView(card) {
  const { top, bottom } = card.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
}
