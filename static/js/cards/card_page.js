// A card on its own page: what others do about it, and what becomes of its call, is seen here too.
import { lookAgain, showCardNow } from "./cards.js";
import { LastingSocket } from "../page/socket.js";

const place = document.querySelector("[data-follow]");

async function showNow() {
  const card = place.querySelector("[data-card]");
  if ("open" in card.dataset) {
    await lookAgain(card);
  } else if (!card.hasAttribute("aria-busy")) {
    const wasUnfolded = Boolean(card.querySelector(".exact[open]"));
    await showCardNow(card, false);
    place.querySelector(".exact")?.toggleAttribute("open", wasUnfolded);
  }
}

let isShowing = false;
let isStale = false;

async function follow() {
  isStale = isShowing;
  if (isShowing) {
    return;
  }
  isShowing = true;
  await showNow().catch((error) => console.warn("The card is not fresh:", error.message));
  isShowing = false;
  if (isStale) {
    follow();
  }
}

document.addEventListener("inbox-changed", follow);

new LastingSocket(() => place.dataset.follow, {
  onMessage: (message) => message.payload.call_id === place.dataset.call && follow(),
});
