// The start page: example tasks fill the form, a task is handed over once, and the lists stay fresh.
import { announce } from "./announce.js";
import { pageFrom } from "./fragments.js";
import { keepLengths } from "./length.js";
import { localTimes } from "./times.js";

const FRESH_MS = 3000;
const IDLE_MS = 15000;
const home = document.querySelector("[data-fresh]");
const form = document.querySelector("[data-task-form]");

function fillIn(event) {
  const example = event.target.closest("[data-example]");
  if (!example || event.ctrlKey || event.metaKey || event.shiftKey) {
    return;
  }
  event.preventDefault();
  const task = form.querySelector("[data-task]");
  task.value = example.dataset.example;
  task.dispatchEvent(new Event("input"));
  announce("The task is filled in.");
}

let isHandedOver = false;

function handOverOnce(event) {
  if (isHandedOver) {
    event.preventDefault();
  }
  isHandedOver = true;
}

keepLengths();
if (form) {
  form.addEventListener("click", fillIn);
  form.addEventListener("submit", handOverOnce);
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  window.addEventListener("pageshow", () => {
    isHandedOver = false;
  });
}

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
    const fresh = await pageFrom(home.dataset.fresh);
    for (const section of document.querySelectorAll("[data-live]")) {
      const newer = fresh.getElementById(section.id);
      if (newer) {
        localTimes(newer);
      }
      if (!newer || newer.textContent === section.textContent) {
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

let waiting = null;

function told(event) {
  const { pending } = event.detail;
  if (waiting !== null && pending > waiting) {
    announce(pending === 1 ? "A card waits for a decision." : `${pending} cards wait for a decision.`);
  }
  waiting = pending;
  refresh();
}

document.addEventListener("inbox-changed", told);
document.addEventListener("visibilitychange", refresh);
document.addEventListener("focusout", () => wasSpared && setTimeout(refresh));
setInterval(() => {
  const patience = document.querySelector("[data-moving]") ? FRESH_MS : IDLE_MS;
  if (performance.now() - freshAt >= patience) {
    refresh();
  }
}, 1000);
