// The page of a run, live: its lines in the order of their numbers, none lost and none twice, however often the
// connection breaks.
import { announce } from "../page/announce.js";
import { elementsFrom, fetchPage } from "../page/fragments.js";
import { readSpoken } from "../page/spoken_text.js";
import { showClosed, showConnected, showLost } from "../page/connection.js";
import { ReconnectingSocket } from "../page/socket.js";
import { followChildren } from "./children.js";
import { showEnd } from "./end.js";
import { Follower } from "./follow.js";
import { Lines } from "./lines.js";
import { hasEnded, showParts } from "./parts.js";
import { TextStream } from "./stream.js";

const ANNOUNCE_AFTER_MS = 300;
const MAX_ANNOUNCED = 3;

const run = document.querySelector("[data-run]");
const panel = document.getElementById("panel");
const lines = new Lines(panel);
const stream = new TextStream(lines);
const follower = new Follower(panel);
let last = Number(panel.dataset.after);
let askedAfter = -1;

// Of many lines at once, only the newest are announced, together.
let unannounced = [];

function announceLine(text) {
  if (!text) {
    return;
  }
  if (!unannounced.length) {
    setTimeout(() => {
      announce(unannounced.slice(-MAX_ANNOUNCED).map((text) => text.replace(/\.$/, "")).join(". "));
      unannounced = [];
    }, ANNOUNCE_AFTER_MS);
  }
  unannounced.push(text);
}

// Asks once for the events that are missing before this one.
function isNext(seq) {
  if (seq > last + 1 && askedAfter !== last) {
    askedAfter = last;
    socket.send({ after: last });
  }
  return seq === last + 1;
}

function showEvent({ seq, type, payload, html }) {
  if (!isNext(seq)) {
    return;
  }
  last = seq;
  panel.dataset.after = String(last);
  const elements = elementsFrom(html);
  const line = elements.find((element) => element.matches(".line"));
  if (line && lines.place(line)) {
    followChildren(line);
    announceLine(line.dataset.announce);
  }
  showChanges(elements);
  if (type === "pass_started") {
    stream.beginPass(payload.pass_number);
  } else if (type === "run_titled" && payload.title) {
    const name = readSpoken(document.getElementById("run-title"));
    document.dispatchEvent(new CustomEvent("page-named", { detail: { name } }));
  } else if (type === "run_finished") {
    showEnd(panel, line);
    showResult();
    lines.noteMove(panel.firstElementChild);
  }
  follower.keepUp();
}

function showChanges(elements) {
  const parts = elements.filter((element) => element.matches("template"));
  showParts(parts);
  if (parts.some(({ dataset: { status } }) => status && status !== "running")) {
    stream.drop(); // if the model is asked again, it begins from the first word
  }
}

// A tool that was tried by hand: its line has only the beginning of its data.
async function showResult() {
  const place = run.querySelector("[data-trial-result]");
  if (!place) {
    return;
  }
  try {
    const now = (await fetchPage(location.pathname)).querySelector("[data-trial-result]");
    place.replaceChildren(...now.children);
    place.hidden = now.hidden;
  } catch (error) {
    console.warn("The result could not be loaded:", error.message);
  }
}

// Review: to the first open card on this page, if it has one.
run.addEventListener("click", (event) => {
  const card = event.target.closest("[data-to-card]") && panel.querySelector("[data-card][data-open], [data-child-open]");
  if (card) {
    event.preventDefault();
    card.scrollIntoView({ block: "center" });
    card.tabIndex = -1;
    card.focus({ preventScroll: true });
  }
});

followChildren(panel);

function receive(message) {
  if (message.seq !== null) {
    showEvent(message);
  } else if (message.type === "run_status") {
    if (message.payload.after === last) {
      showChanges(elementsFrom(message.html));
    }
  } else if (!hasEnded()) {
    stream.show(message.payload);
    follower.keepUp();
  }
}

const socket = new ReconnectingSocket(() => `${panel.dataset.socket}?after=${last}&status=1`, {
  onMessage: receive,
  onOpen: () => {
    askedAfter = -1;
    showConnected();
  },
  onLost: showLost,
  onEnd: showClosed,
});
