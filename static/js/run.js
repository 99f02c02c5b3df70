// The live activity panel: lines in order of their numbers, none lost, none twice, however often the connection breaks.
import { announce } from "./announce.js";
import { noteMoves, offerNewCard, prepareCards } from "./cards.js";
import { elementFrom } from "./fragments.js";
import { LastingSocket } from "./socket.js";
import { countDown, localTimes } from "./times.js";
import { visible } from "./visible.js";

const run = document.querySelector("[data-run]");
const panel = document.getElementById("panel");
const lostBar = document.querySelector("[data-lost]");
let last = Number(panel.dataset.after);
let askedAfter = -1;

const STATUS_OF = {
  pass_started: "running",
  tool_start: "running",
  assistant_message: "running",
  run_waiting: "waiting",
  run_needs_attention: "needs_attention",
  run_resumed: "queued",
  provider_delayed: "queued",
};
const NAME_OF = {
  queued: "Queued",
  running: "Running",
  waiting: "Waiting for a decision",
  needs_attention: "Needs attention",
  succeeded: "Succeeded",
  failed: "Failed",
  cancelled: "Cancelled",
};

function showStatus(status, reason) {
  run.dataset.runStatus = status;
  const badge = run.querySelector("[data-badge]");
  badge.textContent = NAME_OF[status] ?? status;
  badge.className = `badge status-${status}`;
  for (const part of run.querySelectorAll("[data-when]")) {
    const when = part.dataset.when.split(" ");
    part.hidden = !when.includes(status) && !when.includes(`${status}:${reason}`);
  }
}

function inSlot(slot) {
  return slot ? panel.querySelector(`[data-slot="${CSS.escape(slot)}"]`) : null;
}

function place(line) {
  const earlier = inSlot(line.dataset.slot);
  const wasOpen = Boolean(earlier?.querySelector(".unfold[open]"));
  const read = earlier?.querySelector("[data-card][data-open]");
  const asked = line.querySelector("[data-card][data-open]");
  if (read && asked && read.dataset.card !== asked.dataset.card) {
    // Somebody else changed what is being read here: it is not swapped under the reader.
    offerNewCard(read);
    return;
  }
  if (earlier) {
    earlier.replaceWith(line);
    line.querySelector(".unfold")?.toggleAttribute("open", wasOpen);
  } else {
    panel.append(line);
  }
  localTimes(line);
  countDown(line);
  prepareCards();
  announce(line.dataset.announce);
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
    place(line);
  }
  if (message.type === "pass_started") {
    beginPass(message.payload.pass_number);
  }
  const status = message.type === "run_finished" ? message.payload.status : STATUS_OF[message.type];
  if (status) {
    showStatus(status, message.payload.exit_reason);
  }
  if (message.type === "run_finished") {
    panel.querySelectorAll(".streaming").forEach((unfinished) => unfinished.remove());
  }
}

// Streamed text has no number: it waits until its pass stands in the panel, and a pass that is asked again begins anew.
const early = new Map();

function beginPass(pass) {
  inSlot(`text-${pass}`)?.remove();
  const text = early.get(pass);
  early.clear();
  if (text) {
    showText({ pass_number: pass, text });
  }
}

const ENDED = new Set(["succeeded", "failed", "cancelled"]);

function showText({ pass_number: pass, text }) {
  if (ENDED.has(run.dataset.runStatus)) {
    return;
  }
  const slot = `text-${pass}`;
  let line = inSlot(slot);
  if (!inSlot(`pass-${pass}`)) {
    early.set(pass, (early.get(pass) ?? "") + text);
    return;
  }
  if (line && !line.classList.contains("streaming")) {
    return;
  }
  if (!line) {
    line = document.createElement("li");
    line.className = "line says streaming";
    line.dataset.slot = slot;
    line.append(Object.assign(document.createElement("p"), { className: "text" }));
    panel.append(line);
  }
  line.firstChild.append(visible(text));
  noteMoves();
}

const socket = new LastingSocket(() => `${panel.dataset.socket}?after=${last}`, {
  onMessage: (message) => (message.seq === null ? showText(message.payload) : showEvent(message)),
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
