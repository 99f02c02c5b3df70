// Refreshes decided cards that can no longer be undone, until the outcome of their calls is known. Pages with a socket
// of their own do not need this.
import { refreshCard } from "./cards.js";

const INTERVAL_MS = 2000;
const UNSETTLED = "article.card[data-unsettled]:not([aria-busy], :has(.undo:not([hidden]), details[open]))";
let isLoading = false;

async function refreshUnsettled() {
  if (isLoading || document.hidden) {
    return;
  }
  isLoading = true;
  for (const card of document.querySelectorAll(UNSETTLED)) {
    if (!card.closest("[data-socket]")) {
      await refreshCard(card, false).catch(() => {}); // tried again soon
    }
  }
  isLoading = false;
}

setInterval(refreshUnsettled, INTERVAL_MS);
