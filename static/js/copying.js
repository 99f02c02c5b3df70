// Buttons that copy the text beside them: links, keys, secrets and addresses.
import { announce } from "./page/announce.js";

const copy = async (source, button) => {
  if (source.select) source.select();
  else window.getSelection().selectAllChildren(source);
  try {
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    announce("Copied.");
    button.querySelector("span").textContent = "Copied";
  } catch (error) {
    announce("The text is selected. Copy it with the keyboard.");
    console.warn("Not copied:", error.message);
  }
};

if (navigator.clipboard) {
  for (const row of document.querySelectorAll(".copy-row")) {
    const [source, button] = [row.querySelector("[data-copy-source]"), row.querySelector("[data-copy-button]")];
    button.hidden = false;
    button.addEventListener("click", () => copy(source, button));
  }
}
