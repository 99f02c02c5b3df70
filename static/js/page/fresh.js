// A page whose parts stay fresh: what is marked as live is fetched again when the inbox has changed, and now and then,
// more often while something on the page moves. A part in which somebody is at work is left alone until they have left.
import { fetchPage } from "./fragments.js";
import { localTimes } from "./times.js";

const FRESH_MS = 3000;
const IDLE_MS = 15000;
const page = document.querySelector("[data-fresh]");

// Shows what is in `fresh`; what is there already in the same words stays as it is.
function renew(place, fresh) {
  const shown = [...place.children];
  const parts = [...fresh.children].map((part) => {
    const list = part.matches("ul") && shown.find((one) => one.matches("ul"));
    if (list) {
      renew(list, part);
    }
    return list || (shown.find((one) => one.isEqualNode(part)) ?? document.adoptNode(part));
  });
  shown.filter((one) => !parts.includes(one)).forEach((one) => one.remove());
  parts.forEach((part, at) => part === place.children[at] || place.insertBefore(part, place.children[at] ?? null));
}

// What a reader can tell apart: the words, and where they lead.
function told(section) {
  return [section.textContent, ...[...section.querySelectorAll("[href]")].map((link) => link.getAttribute("href"))].join("\n");
}

function isBusy(section) {
  return section.contains(document.activeElement);
}

let isFetching = false;
let isStale = false;
let wasSpared = false;
let freshAt = performance.now();

async function refresh() {
  if (isFetching || document.hidden) {
    isStale = isFetching;
    return;
  }
  isFetching = true;
  wasSpared = false;
  try {
    const fresh = await fetchPage(page.dataset.fresh);
    for (const section of document.querySelectorAll("[data-live]")) {
      const newer = fresh.getElementById(section.id);
      if (newer) {
        localTimes(newer);
      }
      if (!newer || told(newer) === told(section)) {
        continue;
      }
      if (isBusy(section)) {
        wasSpared = true;
      } else {
        renew(section, newer);
        section.toggleAttribute("data-moving", newer.hasAttribute("data-moving"));
      }
    }
  } catch (error) {
    console.warn("The lists are not fresh:", error.message);
  } finally {
    isFetching = false;
    freshAt = performance.now();
  }
  if (isStale) {
    isStale = false;
    refresh();
  }
}

document.addEventListener("inbox-changed", refresh);
document.addEventListener("visibilitychange", refresh);
document.addEventListener("focusout", () => wasSpared && setTimeout(refresh));
setInterval(() => {
  const patience = document.querySelector("[data-moving]") ? FRESH_MS : IDLE_MS;
  if (performance.now() - freshAt >= patience) {
    refresh();
  }
}, 1000);
