// A card on its own page: refreshed when it is decided elsewhere and when its call makes progress.
import { ReconnectingSocket } from "../page/socket.js";
import { refreshCard, refreshIfChanged } from "./cards.js";

const place = document.querySelector("[data-socket]");
let isLoading = false;
let isStale = false;

async function refreshOnce() {
  const card = place.querySelector("[data-card]");
  if ("open" in card.dataset) {
    await refreshIfChanged(card);
  } else if (!card.hasAttribute("aria-busy")) {
    const wasUnfolded = Boolean(card.querySelector(".exact-request[open]"));
    await refreshCard(card, false);
    place.querySelector(".exact-request")?.toggleAttribute("open", wasUnfolded);
  }
}

// Sends one request at a time; events that arrive during it cause one more.
async function refresh() {
  isStale = isLoading;
  if (isLoading) {
    return;
  }
  isLoading = true;
  await refreshOnce().catch((error) => console.warn("The card could not be refreshed:", error.message));
  isLoading = false;
  if (isStale) {
    refresh();
  }
}

document.addEventListener("inbox-changed", refresh);

new ReconnectingSocket(() => place.dataset.socket, {
  onMessage: (message) => message.payload.call_id === place.dataset.call && refresh(),
});
