// On every page: times, cards, lengths of texts; and kept true: the number of waiting cards, and whether somebody stopped
// everything.
import { announce } from "./announce.js";
import { prepareCards } from "./cards.js";
import { showCountInIcon } from "./icon.js";
import { LastingSocket } from "./socket.js";
import { countDown, localTimes } from "./times.js";
import { visible } from "./visible.js";

document.documentElement.classList.add("scripted");
localTimes(document);
countDown(document);
prepareCards();

// A page that answered a form has an address of its own: Back and Reload go there and send nothing again.
const address = document.querySelector("[data-address]")?.dataset.address;
if (address && location.pathname !== address) {
  history.replaceState(null, "", address);
}

for (const form of document.querySelectorAll("[data-submit-on-change]")) {
  form.addEventListener("change", () => form.requestSubmit());
}

let bareTitle = document.title.replace(/^\(\d+\) /, "");

// What the page is about has got another name.
document.addEventListener("page-named", ({ detail: { name } }) => {
  const counter = document.title.slice(0, -bareTitle.length);
  bareTitle = `${name} · Gadget`;
  document.title = counter + bareTitle;
});

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

// `stopped` is {by, at}, or null while everything may go on. The page of a run at work tells it in a line, which is
// announced there; the page of stops has no banner, because it shows the stop itself.
const stopBanner = document.querySelector("[data-stopped]");
const RUN_AT_WORK = "[data-run]:not([data-run-status=succeeded], [data-run-status=failed], [data-run-status=cancelled])";
let wasStopped = "isStopped" in document.body.dataset;

function showStop(stopped) {
  if (stopBanner) {
    showBanner(stopped);
  }
  if (wasStopped !== Boolean(stopped) && !document.querySelector(`${RUN_AT_WORK} [data-socket]`)) {
    announce(stopped ? `${visible(stopped.by)} stopped everything.` : "What was stopped goes on.");
  }
  wasStopped = Boolean(stopped);
}

function showBanner(stopped) {
  if (stopped) {
    stopBanner.querySelector("[data-stopped-by]").textContent = `${visible(stopped.by)} stopped everything`;
    const at = Object.assign(document.createElement("time"), { dateTime: stopped.at });
    stopBanner.querySelector("[data-stopped-at]").replaceChildren(at);
    localTimes(stopBanner);
  }
  stopBanner.hidden = !stopped;
}

function showChange({ pending, stopped }) {
  showPending(pending);
  showStop(stopped);
}

// A run's page has a bar of its own.
const lostBar = document.querySelector("[data-lost]") ? null : document.querySelector("[data-inbox-lost]");

function showLost(text) {
  if (lostBar) {
    lostBar.textContent = text;
    lostBar.hidden = text === "";
  }
}

new LastingSocket(() => document.body.dataset.inbox, {
  onMessage: (message) => message.type === "inbox_changed" && showChange(message.payload),
  onOpen: () => showLost(""),
  onLost: () => showLost("Connection lost. Trying again…"),
  onEnd: (code) => showLost(code === 4401 ? "You are not logged in any more. Reload the page." : "This page is not kept fresh any more. Reload it."),
});
