// Refreshes the live sections of a page when the inbox has changed, every 15 s, and every 3 s while a run is in progress.
// A section with the focus is refreshed when the focus leaves it.
import { fetchPage } from "./fragments.js";
import { localTimes } from "./times.js";

const OFTEN_MS = 3000;
const IDLE_MS = 15000;
const page = document.querySelector("[data-live-url]");

// Replaces the children that differ; equal ones keep their elements.
function update(section, newer) {
  const shown = [...section.children];
  const parts = [...newer.children].map((part) => {
    const list = part.matches("ul") && shown.find((one) => one.matches("ul"));
    if (list) {
      update(list, part);
    }
    return list || (shown.find((one) => one.isEqualNode(part)) ?? document.adoptNode(part));
  });
  shown.filter((one) => !parts.includes(one)).forEach((one) => one.remove());
  parts.forEach((part, at) => part === section.children[at] || section.insertBefore(part, section.children[at] ?? null));
}

// Returns what a reader sees: the text, and the addresses of the links.
function readContent(section) {
  return [section.textContent, ...[...section.querySelectorAll("[href]")].map((link) => link.getAttribute("href"))].join("\n");
}

function hasFocus(section) {
  return section.contains(document.activeElement);
}

let isLoading = false;
let isStale = false;
let wasSkipped = false;
let refreshedAt = performance.now();

async function refresh() {
  if (isLoading || document.hidden) {
    isStale = isLoading;
    return;
  }
  isLoading = true;
  wasSkipped = false;
  try {
    const newerPage = await fetchPage(page.dataset.liveUrl);
    for (const section of document.querySelectorAll("[data-live]")) {
      const newer = newerPage.getElementById(section.id);
      if (newer) {
        localTimes(newer);
      }
      if (!newer || readContent(newer) === readContent(section)) {
        continue;
      }
      if (hasFocus(section)) {
        wasSkipped = true;
      } else {
        update(section, newer);
        section.toggleAttribute("data-refresh-often", newer.hasAttribute("data-refresh-often"));
      }
    }
  } catch (error) {
    console.warn("The lists could not be refreshed:", error.message);
  } finally {
    isLoading = false;
    refreshedAt = performance.now();
  }
  if (isStale) {
    isStale = false;
    refresh();
  }
}

document.addEventListener("inbox-changed", refresh);
document.addEventListener("visibilitychange", refresh);
document.addEventListener("focusout", () => wasSkipped && setTimeout(refresh));
setInterval(() => {
  const interval = document.querySelector("[data-refresh-often]") ? OFTEN_MS : IDLE_MS;
  if (performance.now() - refreshedAt >= interval) {
    refresh();
  }
}, 1000);
