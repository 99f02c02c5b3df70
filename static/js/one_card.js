// A card on its own page: what others do about it is seen here too.
import { lookAgain } from "./cards.js";

document.addEventListener("inbox-changed", () => {
  const card = document.querySelector("[data-card][data-open]");
  if (card) {
    lookAgain(card).catch((error) => console.warn("The card is not fresh:", error.message));
  }
});
