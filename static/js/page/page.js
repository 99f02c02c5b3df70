// On every page: the frame, times, cards and lengths of texts, and live: the number of waiting cards and a stop of everything.
import { announce } from "./announce.js";
import { prepareCards } from "../cards/cards.js";
import "../cards/decisions.js";
import "../cards/outcomes.js";
import "../frame/drawer.js";
import "../frame/keys.js";
import "../frame/theme.js";
import { showClosed, showConnected, showLost } from "./connection.js";
import { nodesFrom } from "./fragments.js";
import { showCountInIcon } from "./icon.js";
import "./requests.js";
import { ReconnectingSocket } from "./socket.js";
import { countDown, localTimes } from "./times.js";
import { restoreAfterLogin, restoreUnsent } from "./typed_texts.js";

document.documentElement.classList.add("scripted");
navigator.serviceWorker?.getRegistration("/").then((registration) => registration?.active?.postMessage("opened"));
localTimes(document);
countDown(document);
prepareCards();
restoreAfterLogin();
restoreUnsent();

// A page that responds to a form has an address of its own, so that Back and Reload do not send the form again.
const address = document.querySelector("[data-address]")?.dataset.address;
if (address && location.pathname !== address) {
  history.replaceState(null, "", address);
}

for (const form of document.querySelectorAll("[data-submit-on-change]")) {
  form.addEventListener("change", () => form.requestSubmit());
}

let bareTitle = document.title.replace(/^\(\d+\) /, "");

// The page's subject has a new name.
document.addEventListener("page-named", ({ detail: { name } }) => {
  const counter = document.title.slice(0, -bareTitle.length);
  bareTitle = `${name} · Gadget`;
  document.title = counter + bareTitle;
});

function showInbox(change) {
  const { pending } = change;
  for (const badge of document.querySelectorAll("[data-pending]")) {
    badge.textContent = String(pending);
    badge.hidden = pending === 0;
  }
  document.title = pending ? `(${pending}) ${bareTitle}` : bareTitle;
  showCountInIcon(pending);
  document.dispatchEvent(new CustomEvent("inbox-changed", { detail: change }));
}

showCountInIcon(Number(document.querySelector("[data-pending]")?.textContent ?? 0));

// A stop of everything. The page of stops has no banner, and that of a live run announces its own line instead.
const stopBanner = document.getElementById("stop-banner");
const LIVE_RUN = "[data-run]:not([data-ended]) [data-socket]";
let wasStopped = "isStopped" in document.body.dataset;

function showStop(html) {
  const isStopped = html !== "";
  const banner = document.createElement("div");
  banner.append(...nodesFrom(html));
  if (isStopped !== wasStopped && !document.querySelector(LIVE_RUN)) {
    announce(isStopped ? `${banner.querySelector("[data-stopped-by]").textContent}.` : "The stop is lifted.");
  }
  wasStopped = isStopped;
  if (stopBanner) {
    stopBanner.replaceChildren(...banner.childNodes);
    stopBanner.hidden = !isStopped;
    localTimes(stopBanner);
  }
}

// A run's page shows by its own socket whether it is updated.
let wasLost = false;
const isQuiet = Boolean(document.querySelector("[data-lost]"));

const inbox = new ReconnectingSocket(() => document.body.dataset.inbox, {
  onMessage: ({ type, payload, html, rows }) => {
    if (type === "inbox_changed") {
      showInbox({ ...payload, rows });
      showStop(html);
    } else if (type === "card_changed") {
      document.dispatchEvent(new CustomEvent("card-changed", { detail: payload }));
    } else if (type === "presence") {
      document.dispatchEvent(new CustomEvent("somebody-looks", { detail: payload }));
    }
  },
  onOpen: () => {
    isQuiet || showConnected();
    if (wasLost) {
      document.dispatchEvent(new CustomEvent("card-changed", { detail: {} })); // messages that were sent meanwhile are lost
    }
    wasLost = false;
  },
  onLost: () => {
    wasLost = true;
    isQuiet || showLost();
  },
  onEnd: (code) => isQuiet || showClosed(code),
});

// The inbox tells others which card its reader looks at.
document.addEventListener("looking-at", ({ detail: { card } }) => inbox.send({ looking_at: Number(card) }));
