// The button that copies a link which is shown once.
import { announce } from "./page/announce.js";

const link = document.querySelector("[data-copy-source]");
const button = document.querySelector("[data-copy-button]");

if (link && button && navigator.clipboard) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    link.select();
    try {
      await navigator.clipboard.writeText(link.value);
      announce("Link copied.");
      button.lastChild.textContent = " Copied";
    } catch (error) {
      announce("The link is selected. Copy it with the keyboard.");
      console.warn("Not copied:", error.message);
    }
  });
}
