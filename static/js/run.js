// The live activity panel: lines in order of their numbers, none lost, none twice, however often the connection breaks.
import { announce } from "./announce.js";
import { followChildren } from "./children.js";
import { showEnd } from "./end.js";
import { elementFrom, pageFrom } from "./fragments.js";
import { Lines } from "./lines.js";
import { LastingSocket } from "./socket.js";
import { showBar } from "./strip.js";
import { countUntil } from "./times.js";
import { visible } from "./visible.js";

const DELAYED = "delayed";
const SAY_AFTER_MS = 300;
const MOST_SAID = 3;

const run = document.querySelector("[data-run]");
const panel = document.getElementById("panel");
const badge = run.querySelector("[data-badge]");
const parts = [...run.querySelectorAll("[data-when]")];
const lostBar = document.querySelector("[data-lost]");
const lines = new Lines(panel);
let last = Number(panel.dataset.after);
const nextTry = run.querySelector("[data-next-try]");
const countNextTry = countUntil(nextTry);
let askedAfter = -1;
let shownReason = nextTry.dateTime ? DELAYED : "";

const STATUS_OF = {
  pass_started: "running",
  tool_start: "running",
  assistant_message: "running",
  run_needs_attention: "needs_attention",
  run_resumed: "queued",
};
const NAME_OF = {
  queued: "Queued",
  "queued:delayed": "Waiting for the model",
  running: "Running",
  waiting: "Waiting",
  "waiting:decision": "Waiting for a decision",
  "waiting:answer": "Waiting for an answer",
  "waiting:colleague": "Waiting for a colleague",
  needs_attention: "Needs attention",
  succeeded: "Succeeded",
  failed: "Failed",
  cancelled: "Cancelled",
};
const MAY_GO_ON = new Set(["run_resumed", "run_waiting", "run_needs_attention", "run_finished", "pass_started"]);
// After these a pass whose answer was being written is asked again, from its first word.
const ASKED_ANEW = new Set(["provider_delayed", "run_waiting", "run_resumed"]);
const ENDED = new Set(["succeeded", "failed", "cancelled"]);

function showStatus(status, reason = "") {
  if (run.dataset.runStatus === status && shownReason === reason) {
    return;
  }
  run.dataset.runStatus = status;
  shownReason = reason;
  badge.textContent = NAME_OF[`${status}:${reason}`] ?? NAME_OF[status] ?? status;
  badge.className = `badge status-${status}`;
  for (const part of parts) {
    const when = part.dataset.when.split(" ");
    part.hidden = !when.includes(status) && !when.includes(`${status}:${reason}`);
  }
}

function waitsFor({ decisions, answers, colleagues }) {
  return decisions ? "decision" : answers ? "answer" : colleagues?.length ? "colleague" : "";
}

// Many lines at once are announced together, the newest of them.
let unsaid = [];

function say(text) {
  if (!text) {
    return;
  }
  if (!unsaid.length) {
    setTimeout(() => {
      announce(unsaid.slice(-MOST_SAID).join(". "));
      unsaid = [];
    }, SAY_AFTER_MS);
  }
  unsaid.push(text);
}

function showLine(line) {
  if (!lines.place(line)) {
    return;
  }
  followChildren(line);
  const pass = lines.in(`pass-${line.dataset.pass}`);
  if (pass && line.dataset.figures) {
    pass.querySelector("[data-pass-figures]").textContent = line.dataset.figures;
  }
  showBar(pass, line);
  say(line.dataset.announce);
}

function showEvent(message) {
  if (message.seq <= last) {
    return;
  }
  if (message.seq > last + 1) {
    if (askedAfter !== last) {
      askedAfter = last;
      socket.send({ after: last });
    }
    return;
  }
  last = message.seq;
  panel.dataset.after = String(last);
  const line = message.html && elementFrom(message.html);
  if (line) {
    showLine(line);
  }
  if (message.type === "pass_started") {
    beginPass(message.payload.pass_number);
  }
  if (message.type === "run_titled" && message.payload.title) {
    const name = visible(message.payload.title);
    run.querySelector("h1").textContent = name;
    document.dispatchEvent(new CustomEvent("page-named", { detail: { name } }));
  }
  if (ASKED_ANEW.has(message.type)) {
    dropText();
  }
  if (message.type === "provider_delayed") {
    nextTry.dateTime = message.payload.retry_at;
    countNextTry();
    showStatus("queued", DELAYED);
  } else if (message.type === "run_waiting" && message.payload.reason) {
    showStopped(message.payload.reason);
  } else if (message.type === "run_waiting") {
    showStatus("waiting", waitsFor(message.payload));
  } else if (message.type in STATUS_OF) {
    showStatus(STATUS_OF[message.type]);
  }
  if (!stopNotice.hidden && MAY_GO_ON.has(message.type) && toldOfStop !== last) {
    lookAtStop();
  }
  if (message.type === "run_finished") {
    showStatus(message.payload.status, message.payload.exit_reason);
    endStream();
    showEnd(panel, line);
    showTried();
    lines.moved(panel.firstElementChild);
  }
}

// What changed without an event; older than what is shown already, it is nothing new.
function showState({ status, reason, stopped, next_try: nextTryAt, after }) {
  if (after !== last) {
    return;
  }
  if (nextTryAt) {
    nextTry.dateTime = nextTryAt;
    countNextTry();
  }
  if (status !== "running") {
    dropText();
  }
  showStatus(status, reason);
  showStopped(stopped);
}

// A stop that holds this run: who is behind it comes with its event. Whether it still holds after what came next is only
// known to the server.
const stopNotice = run.querySelector("[data-run-stopped]");

let toldOfStop = 0;

function showStopped(because) {
  toldOfStop = last;
  if (because) {
    stopNotice.querySelector("[data-because]").textContent = visible(because);
  }
  stopNotice.hidden = !because;
}

async function lookAtStop() {
  const before = toldOfStop;
  try {
    const fresh = (await pageFrom(location.pathname)).querySelector("[data-run-stopped]");
    if (toldOfStop === before) {
      stopNotice.hidden = fresh.hidden;
    }
  } catch (error) {
    console.warn("The notice of a stop is not fresh:", error.message);
  }
}

// A tool that was tried by hand: the whole of what it answered stands on the page, where its line has only the beginning.
async function showTried() {
  const place = run.querySelector("[data-tried]");
  if (!place) {
    return;
  }
  try {
    const fresh = (await pageFrom(location.pathname)).querySelector("[data-tried]");
    place.replaceChildren(...fresh.children);
    place.hidden = fresh.hidden;
  } catch (error) {
    console.warn("What the tool answered could not be fetched:", error.message);
  }
}

// Streamed text has no number: it waits until its pass stands in the panel, and a pass that is asked again begins anew,
// also where another worker has silently taken over from the one that wrote.
const early = new Map();
let streaming = "";
let writer = 0; // the epoch of the newest one that was heard

function beginPass(pass) {
  lines.remove(`text-${pass}`);
  const text = early.get(pass);
  early.clear();
  if (text) {
    showText({ pass_number: pass, epoch: writer, text });
  }
}

function endStream() {
  if (lines.in(streaming)?.classList.contains("streaming")) {
    lines.remove(streaming);
  }
}

function dropText() {
  endStream();
  early.clear();
}

function showText({ pass_number: pass, epoch, text }) {
  if (ENDED.has(run.dataset.runStatus) || epoch < writer) {
    return;
  }
  if (epoch > writer) {
    writer = epoch;
    dropText();
  }
  const slot = `text-${pass}`;
  const line = lines.in(slot);
  if (!lines.in(`pass-${pass}`)) {
    early.set(pass, (early.get(pass) ?? "") + text);
    return;
  }
  if (line && !line.classList.contains("streaming")) {
    return;
  }
  const shown = line ?? streamedLine(slot);
  const place = shown.firstChild;
  place.append(visible(text, place.lastChild?.data));
  lines.moved(shown);
}

function streamedLine(slot) {
  const line = document.createElement("li");
  line.className = "line says streaming";
  line.dataset.slot = streaming = slot;
  line.append(Object.assign(document.createElement("p"), { className: "text" }));
  lines.place(line);
  return line;
}

run.querySelector("[data-to-card]")?.addEventListener("click", (event) => {
  const card = panel.querySelector("[data-card][data-open], [data-child-open]");
  if (card) {
    event.preventDefault();
    card.scrollIntoView({ block: "center" });
    card.tabIndex = -1;
    card.focus({ preventScroll: true });
  }
});

followChildren(panel);

function hear(message) {
  if (message.seq !== null) {
    showEvent(message);
  } else if (message.type === "run_status") {
    showState(message.payload);
  } else {
    showText(message.payload);
  }
}

const socket = new LastingSocket(() => `${panel.dataset.socket}?after=${last}&status=1`, {
  onMessage: hear,
  onOpen: () => {
    askedAfter = -1;
    lostBar.hidden = true;
  },
  onLost: () => {
    lostBar.hidden = false;
  },
  onEnd: (code) => {
    lostBar.textContent = code === 4401 ? "You are not logged in any more. Reload the page." : "This run is not there any more.";
    lostBar.hidden = false;
  },
});
