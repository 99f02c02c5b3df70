// The inbox: new cards are added at the end, and a decided one says at once who decided it.
import { prepareCards, showCardNow } from "./cards.js";
import { pageFrom } from "./fragments.js";
import { localTimes } from "./times.js";

const list = document.querySelector("[data-inbox-list]");
let isFetching = false;
let isStale = false;

function shownIds() {
  return [...list.querySelectorAll("[data-card][data-open]")].map((card) => card.dataset.card);
}

async function refresh() {
  if (!list || isFetching) {
    isStale = true;
    return;
  }
  isFetching = true;
  try {
    const fresh = await pageFrom(location.pathname + location.search);
    const waiting = new Map([...fresh.querySelectorAll("[data-inbox-card]")].map((one) => [one.dataset.inboxCard, one]));
    const shown = shownIds();
    for (const id of shown.filter((one) => !waiting.has(one))) {
      await showCardNow(document.getElementById(`card-${id}`), false);
    }
    for (const [id, card] of waiting) {
      if (!shown.includes(id) && !document.getElementById(`card-${id}`)) {
        list.append(document.adoptNode(card));
      }
    }
    document.querySelector("[data-nothing]").hidden = list.children.length > 0;
    localTimes(list);
    prepareCards();
  } catch (error) {
    console.warn("The inbox is not fresh:", error.message);
  } finally {
    isFetching = false;
  }
  if (isStale) {
    isStale = false;
    refresh();
  }
}

document.addEventListener("inbox-changed", refresh);
