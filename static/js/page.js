// On every page: times, cards, and the number of waiting cards kept true.
import { prepareCards } from "./cards.js";
import { showCountInIcon } from "./icon.js";
import { LastingSocket } from "./socket.js";
import { countDown, localTimes } from "./times.js";

document.documentElement.classList.add("scripted");
localTimes(document);
countDown(document);
prepareCards();
showCurrentPlace(document.querySelector(".top nav"));

// A page that answered a form has an address of its own: Back and Reload go there and send nothing again.
const address = document.querySelector("[data-address]")?.dataset.address;
if (address && location.pathname !== address) {
  history.replaceState(null, "", address);
}

for (const form of document.querySelectorAll("[data-submit-on-change]")) {
  form.addEventListener("change", () => form.requestSubmit());
}

// In a narrow window the places stand in one row that scrolls: the current one is brought into it.
function showCurrentPlace(nav) {
  const place = nav?.querySelector("[aria-current]");
  if (place) {
    nav.scrollLeft += place.getBoundingClientRect().left - nav.getBoundingClientRect().left - (nav.clientWidth - place.clientWidth) / 2;
  }
}

const bareTitle = document.title.replace(/^\(\d+\) /, "");

function showPending(pending) {
  for (const badge of document.querySelectorAll("[data-pending]")) {
    badge.textContent = String(pending);
    badge.hidden = pending === 0;
  }
  document.title = pending ? `(${pending}) ${bareTitle}` : bareTitle;
  showCountInIcon(pending);
  document.dispatchEvent(new CustomEvent("inbox-changed", { detail: { pending } }));
}

showCountInIcon(Number(document.querySelector("[data-pending]")?.textContent ?? 0));

// A run's page has a bar of its own.
const lostBar = document.querySelector("[data-lost]") ? null : document.querySelector("[data-inbox-lost]");

function showLost(text) {
  if (lostBar) {
    lostBar.textContent = text;
    lostBar.hidden = text === "";
  }
}

new LastingSocket(() => document.body.dataset.inbox, {
  onMessage: (message) => message.type === "inbox_changed" && showPending(message.payload.pending),
  onOpen: () => showLost(""),
  onLost: () => showLost("Connection lost. Trying again…"),
  onEnd: (code) => showLost(code === 4401 ? "You are not logged in any more. Reload the page." : "This page is not kept fresh any more. Reload it."),
});
