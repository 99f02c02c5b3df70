// The drawer with the navigation, below 1,024 px. The browser opens and closes it; while it is open, the rest of the page
// takes no focus.
const drawer = document.getElementById("drawer");
const WIDE = matchMedia("(min-width: 64rem)");

function setRestInert(isInert) {
  const rest = [...document.querySelectorAll("body > main, body > .skip, .top > :not(#drawer)")];
  for (const part of rest) {
    part.inert = isInert;
  }
}

drawer?.addEventListener("beforetoggle", (event) => {
  if (event.target === drawer && event.newState === "closed") {
    setRestInert(false); // before the browser gives the focus back to the button
  }
});
drawer?.addEventListener("toggle", (event) => {
  if (event.target === drawer && event.newState === "open") {
    setRestInert(true);
    drawer.querySelector("[aria-current], a")?.focus();
  }
});
WIDE.addEventListener("change", () => drawer?.matches(":popover-open") && drawer.hidePopover());
