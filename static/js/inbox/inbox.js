// The inbox: a list of waiting cards beside the selected one. After a decision the next card is shown by itself; keys
// move through the list and decide; live messages add and remove single rows.
import { post } from "../cards/decisions.js";
import { refreshIfChanged } from "../cards/cards.js";
import { moveToMissing } from "../cards/guard.js";
import { listenForKeys } from "../frame/keys.js";
import { announce } from "../page/announce.js";
import { fetchPage } from "../page/fragments.js";
import { fetchAhead, forget, hideNothing, paneCard, showCardOf, showNothing } from "./pane.js";
import { BULK_GRACE_S, clearPicks, decideRows, lineOf, pickGroup, summarize, togglePick, undoRows, updateBar } from "./selection.js";
import { addRows, allRows, findRow, linkOf, markSelected, neighborOf, nextAfter, removeRow, selectedRow } from "./rows.js";
import { startPresence } from "./presence.js";
import { snooze } from "./snooze.js";
import { showToast } from "./toasts.js";

const desk = document.querySelector("[data-desk]");
const FIELD = "input:not([type=hidden]), textarea, select";
const DONE = { approve: "Approved", deny: "Denied", answer: "Answered", resolve: "Resolved" };
const FAST_MS = 250;
let shownAt = 0;

// Selects a row and shows its card.
async function select(row) {
  const hadFocus = document.activeElement?.closest("[data-row]");
  markSelected(row);
  if (hadFocus) {
    linkOf(row).focus({ preventScroll: true });
  }
  removeGone();
  hideNothing();
  try {
    await showCardOf(row, () => selectedRow() === row);
    shownAt = performance.now();
    document.dispatchEvent(new CustomEvent("card-selected"));
    history.replaceState(null, "", linkOf(row).href);
    document.querySelector("[data-end-snooze]")?.setAttribute("action", `/approvals/${row.dataset.row}/snooze/end/`);
    fetchAhead([nextAfter(row, 1), nextAfter(row, 2)].filter(Boolean));
  } catch {
    announce("The card could not be loaded. Select it again.");
  }
}

// A card that was decided elsewhere keeps its row as long as it is selected.
function removeGone() {
  document.querySelectorAll(".row.gone:not(:has(> a[aria-current]))").forEach(removeRow);
}

async function leaveRow(row) {
  const next = neighborOf(row);
  const wasSelected = row === selectedRow();
  forget(row.dataset.row);
  removeRow(row);
  if (!wasSelected) {
    return;
  }
  if (next) {
    await select(next);
  } else {
    await showEmpty();
  }
}

async function showEmpty() {
  const page = await fetchPage(location.pathname + location.search.replace(/card=\d+/, "")).catch(() => null);
  showNothing(page?.querySelector("[data-nothing]"));
  announce("You’re all caught up.");
}

// A decision of this reader: the row leaves the list, a note offers to undo it, and the next card is shown.
document.addEventListener("card-decided", (event) => {
  const { form } = event.detail;
  const card = event.target;
  const row = findRow(card.dataset.card);
  if (!DONE[form.dataset.action] || !row) {
    return;
  }
  event.preventDefault();
  const what = lineOf(row);
  const seconds = form.dataset.action === "approve" ? Number(form.dataset.grace) : 0;
  const undo = seconds ? () => undoApproval(card.dataset.card) : null;
  lastUndo = undo;
  const end = showToast(`${DONE[form.dataset.action]}: ${what.length > 80 ? `${what.slice(0, 79)}…` : what}`, { undo, seconds });
  endLastToast = end;
  leaveRow(row);
});

let lastUndo = null;
let endLastToast = () => {};

async function undoApproval(id) {
  lastUndo = null;
  endLastToast();
  const response = await post(`/api/approvals/${id}/undo`, {}).catch(() => null);
  const answer = await response?.json().catch(() => ({}));
  if (!response?.ok) {
    showToast(`Couldn’t undo: ${answer?.detail ?? "Gadget could not be reached"}.`);
    return;
  }
  wanted = String(answer.next_approval_id);
  showToast("Undone. The card waits for a decision again.");
  const row = findRow(wanted);
  if (row) {
    await select(row);
  }
}

// A decision in bulk: decided rows leave the list, the others stay and say why.
async function decideInBulk(rows, action, reason) {
  const { done, kept } = await decideRows(rows, action, reason);
  const ids = done.map((row) => row.dataset.row);
  const next = done.includes(selectedRow()) ? allRows().find((row) => !done.includes(row)) : null;
  const isLeft = next !== null;
  for (const [row, detail] of kept) {
    row.dataset.refused = "";
    linkOf(row).title = `Not decided: ${detail}`;
  }
  for (const row of done) {
    forget(row.dataset.row);
    removeRow(row);
  }
  clearPicks();
  const undo = action === "approve" && ids.length ? () => undoBulk(ids) : null;
  const rest = kept.length ? ` ${kept.length} not decided: ${kept[0][1]}.` : "";
  lastUndo = undo;
  endLastToast = showToast(`${DONE[action]}: ${ids.length} ${ids.length === 1 ? "card" : "cards"}.${rest}`, { undo, seconds: BULK_GRACE_S });
  if (isLeft) {
    await (next ? select(next) : showEmpty());
  }
}

async function undoBulk(ids) {
  lastUndo = null;
  endLastToast();
  const count = await undoRows(ids);
  showToast(count === ids.length ? `Undone: ${count} ${count === 1 ? "card waits" : "cards wait"} again.` : `Undone: ${count} of ${ids.length}. The others have started.`);
}

let wanted = ""; // the id of the card to select as soon as its row arrives

// A live message. Its numbers tell whether this list is complete; if not, it is loaded again.
async function follow({ pending, newest, gone = [], rows = "" }) {
  const added = rows.split("data-row=").length - 1;
  const isComplete = Number(desk.dataset.waiting) - gone.length + added === pending && newest <= newestOf(rows);
  Object.assign(desk.dataset, { waiting: String(pending), newest: String(newest) });
  addRows(rows);
  for (const row of gone.map(findRow).filter(Boolean)) {
    await showGone(row);
  }
  if (!isComplete) {
    await reload();
  }
  removeGone();
  const row = findRow(wanted);
  if (row) {
    wanted = "";
    await select(row);
  } else if (!selectedRow() && allRows().length) {
    await select(allRows()[0]);
  }
}

const newestOf = (rows) => Math.max(Number(desk.dataset.newest), ...[...rows.matchAll(/data-row="(\d+)"/g)].map(([, id]) => Number(id)));

// A card that was decided elsewhere leaves the list; a selected one stays, and its card shows who decided it.
async function showGone(row) {
  forget(row.dataset.row);
  if (row !== selectedRow() || paneCard()?.dataset.card !== row.dataset.row) {
    removeRow(row);
    return;
  }
  row.classList.add("gone");
  linkOf(row).title = "Decided elsewhere";
  await refreshIfChanged(paneCard(), "Somebody else just changed this card. ");
}

async function reload() {
  const page = await fetchPage(location.pathname + location.search).catch(() => null);
  if (page) {
    addRows([...page.querySelectorAll("[data-row]")].map((row) => row.outerHTML).join(""));
    const waiting = new Set([...page.querySelectorAll("[data-row]")].map((row) => row.dataset.row));
    for (const row of allRows().filter((one) => !waiting.has(one.dataset.row) && !one.matches(".gone"))) {
      await showGone(row);
    }
  }
}

let following = Promise.resolve();
document.addEventListener("inbox-changed", ({ detail }) => {
  following = following.then(() => follow(detail)).catch((error) => console.warn("The list could not be updated:", error.message));
});

// The card that an undo or an edit has put in the place of another, or one that was decided meanwhile.
document.addEventListener("card-shown", () => (shownAt = performance.now()));

function move(step) {
  const next = nextAfter(selectedRow(), step);
  next ? select(next) : announce(step > 0 ? "This is the last waiting card." : "This is the first waiting card.");
}

// Calls `act` with the card if it waits and the reader may decide it.
function withCard(act) {
  const card = paneCard();
  if (!card || !("open" in card.dataset)) {
    announce(allRows().length ? "Select a waiting card first, with j and k." : "You’re all caught up.");
  } else if (card.querySelector("form[data-action=answer]")) {
    card.querySelector("form[data-action=answer] textarea").focus();
    announce("mayOperate" in document.body.dataset ? "A question: write an answer, or press the number of a choice." : "Only operators can answer questions.");
  } else if (!("mayDecide" in document.body.dataset)) {
    announce("Only approvers can decide cards.");
  } else if (card.querySelector("form[data-action=resolve]")) {
    card.querySelector("form[data-action=resolve] input[name=reason]").focus();
  } else if (!("locked" in card.dataset)) {
    act(card);
  }
}

// The two-person rule: whoever asked for the call may edit the card, and someone else decides it.
function unlessOwn(act) {
  return (card) => ("isBarred" in card.dataset ? announce(card.querySelector(".two-person-rule").textContent) : act(card));
}

// Nobody has read a card that was shown a moment ago: the key was meant for the one before.
function approve(card) {
  const button = card.querySelector(".approve-button");
  if (performance.now() - shownAt < FAST_MS) {
    return;
  }
  if (button.disabled || card.querySelector("[data-confirm]")) {
    goToMissing(card);
  } else {
    button.form.requestSubmit(button);
  }
}

// Goes to what the card still needs: unread parts are opened, then the confirmation is typed. What was just opened
// counts as just shown.
function goToMissing(card) {
  const openAll = card.querySelector("[data-unread]:not([hidden]) [data-open-all]:not([hidden])");
  if (!openAll) {
    moveToMissing(card);
    return;
  }
  const first = card.querySelector(".effect details:not([open]), .sentence details:not([open]), .changed details:not([open])");
  openAll.click();
  shownAt = performance.now();
  const confirm = card.querySelector("[data-confirm]");
  (confirm ?? card).focus({ preventScroll: true });
  first?.scrollIntoView({ block: "nearest" });
  announce(confirm ? "Opened. Read it, then type the confirmation." : "Opened. Read it, then decide.");
}

function openForm(card, name, field) {
  const form = card.querySelector(`.actions > .${name}`);
  if (form) {
    form.open = true;
    const enter = () => form.querySelector(field)?.focus();
    form.addEventListener("form-loaded", enter, { once: true });
    enter();
  }
}

// A number answers a question with one of its choices, or denies with one of the reasons if that form is open.
function choose(number) {
  const card = paneCard();
  const choice = card?.querySelectorAll("form[data-action=answer] button[name=choice]")[number - 1];
  const deny = card?.querySelector(".deny[open] form");
  const preset = deny?.elements.namedItem("preset").options[number];
  if (choice) {
    choice.form.requestSubmit(choice);
  } else if (preset) {
    preset.selected = true;
    deny.requestSubmit();
  }
}

async function snoozeRow(row) {
  const problem = await snooze(row.dataset.row);
  if (problem === "cancelled") {
    return;
  }
  showToast(problem || `Snoozed: ${lineOf(row)}`);
  if (!problem) {
    await leaveRow(row);
  }
}

function decidesInBulk() {
  const may = "mayDecide" in document.body.dataset;
  if (!may) {
    announce("Only approvers can decide cards.");
  }
  return may;
}

function leaveForm(event) {
  const form = event.target.closest(".actions > details, .confirm, .answer");
  const card = event.target.closest("[data-card]");
  if (event.key !== "Escape" || !form || (form.matches(".edit") && "edited" in card.dataset)) {
    return;
  }
  form.open = false;
  card.focus({ preventScroll: true });
}

if (desk) {
  startPresence();
  desk.addEventListener("click", (event) => {
    const row = event.target.closest("[data-row] > a")?.parentElement;
    if (row && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      select(row).then(() => event.detail === 0 && paneCard()?.focus({ preventScroll: true }));
      if (getComputedStyle(desk).getPropertyValue("--is-stacked").trim() === "1") {
        document.querySelector("[data-pane]").scrollIntoView({ block: "start" });
      }
    }
  });
  desk.addEventListener("keydown", leaveForm);
  desk.addEventListener("change", (event) => event.target.matches("[data-pick]") && updateBar());
  for (const button of desk.querySelectorAll("[data-bulk-act]")) {
    button.addEventListener("click", () => summarize(button.dataset.bulkAct, decideInBulk));
  }
  desk.querySelector("[data-bulk-clear]").addEventListener("click", clearPicks);
  const first = selectedRow();
  if (first) {
    fetchAhead([nextAfter(first, 1), nextAfter(first, 2)].filter(Boolean));
  }
  const digits = Object.fromEntries([1, 2, 3, 4, 5, 6, 7, 8, 9].map((number) => [String(number), () => choose(number)]));
  const acts = {
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Enter: () => paneCard() && goToMissing(paneCard()),
    o: () => paneCard()?.querySelector(".own-page")?.click(),
    a: () => withCard(unlessOwn(approve)),
    d: () => withCard(unlessOwn((card) => openForm(card, "deny", "summary"))),
    e: () => withCard((card) => openForm(card, "edit", FIELD)),
    u: () => (lastUndo ? lastUndo() : announce("No approval can be undone.")),
    s: () => selectedRow() && snoozeRow(selectedRow()),
    x: () => togglePick(selectedRow()),
    X: () => pickGroup(selectedRow()),
    A: () => decidesInBulk() && summarize("approve", decideInBulk),
    D: () => decidesInBulk() && summarize("deny", decideInBulk),
    ...digits,
  };
  listenForKeys(acts, new Set(["j", "k", "ArrowDown", "ArrowUp"]));
}
