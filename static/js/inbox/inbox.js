// The inbox: a list of waiting cards beside the selected one. After a decision the next card is shown automatically; keys
// move through the list and decide; live messages add and remove single rows.
import { post } from "../cards/decisions.js";
import { refreshIfChanged } from "../cards/cards.js";
import { moveToMissing } from "../cards/guard.js";
import { listenForKeys } from "../frame/keys.js";
import { announce } from "../page/announce.js";
import { fetchPage } from "../page/fragments.js";
import { fetchAhead, fetchedIds, forget, hideNothing, paneCard, refreshWarnings, showCardOf, showNothing } from "./pane.js";
import { clearPicks, decideRows, lineOf, pickGroup, summarize, togglePick, undoRows, updateBar } from "./selection.js";
import {
  addRows, allRows, findRow, isInDefaultOrder, linkOf, markSelected, neighborOf, nextAfter, removeRow, replaceRows,
  selectedRow, shareTargets, snoozedCalls, targetsOf,
} from "./rows.js";
import { startClaims, take } from "./claims.js";
import { startPresence } from "./presence.js";
import { snooze } from "./snooze.js";
import { showToast, undoLast } from "./toasts.js";

const desk = document.querySelector("[data-desk]");
const FIELD = "input:not([type=hidden]), textarea, select";
const DONE = { approve: "Approved", deny: "Denied", answer: "Answered", resolve: "Resolved" };
const FAST_MS = 250;
const GRACE_MS = 5_000;
const FEW_ROWS = 50;
const IDLE_MS = 6_000;
let shownAt = 0;

// Selects a row and shows its card. `hadFocus` is true if the focus was on a row that has just left the list.
async function select(row, hadFocus = document.activeElement?.closest("[data-row]")) {
  markSelected(row);
  if (hadFocus) {
    linkOf(row).focus({ preventScroll: true });
  }
  removeGone();
  hideNothing();
  try {
    await showCardOf(row, () => selectedRow() === row);
  } catch {
    announce("The card could not be loaded. Select it again.");
    return;
  }
  if (selectedRow() !== row) {
    return;
  }
  shownAt = performance.now();
  document.querySelector("[data-snooze-foot]").hidden = false;
  document.dispatchEvent(new CustomEvent("card-selected"));
  history.replaceState(null, "", `?${desk.dataset.query}card=${row.dataset.row}`);
  document.querySelector("[data-end-snooze]")?.setAttribute("action", `/approvals/${row.dataset.row}/snooze/end/`);
  fetchAhead([nextAfter(row, 1), nextAfter(row, 2)].filter(Boolean));
}

// A card that was decided elsewhere keeps its row as long as it is selected.
function removeGone() {
  document.querySelectorAll(".row.gone:not(:has(> a[aria-current]))").forEach(removeRow);
}

async function leaveRow(row) {
  const next = neighborOf(row);
  const wasSelected = row === selectedRow();
  const hadFocus = row.contains(document.activeElement);
  forget(row.dataset.row);
  removeRow(row);
  noteTouched([row]);
  if (!wasSelected) {
    return;
  }
  if (next) {
    await select(next, hadFocus);
  } else {
    await showEmpty(hadFocus);
  }
  if ("isCut" in desk.dataset && allRows().length < FEW_ROWS) {
    await reload();
  }
}

async function showEmpty(hadFocus = false) {
  const page = await fetchPage(location.pathname + location.search.replace(/card=\d+/, "")).catch(() => null);
  if (page) {
    replaceRows(page);
  }
  if (allRows().length) {
    await select(allRows()[0], hadFocus);
    return;
  }
  document.querySelector("[data-snooze-foot]").hidden = true;
  document.querySelector("[data-end-snooze]")?.remove();
  announce(showNothing(page?.querySelector("[data-nothing]"), hadFocus));
}

// Other cards that affect the same targets name each other, and may no longer run as shown: once these rows were
// decided, and again once their calls have run.
function noteTouched(rows) {
  const touched = targetsOf(rows);
  const check = () => {
    fetchedIds().filter((id) => !findRow(id) || shareTargets(touched, targetsOf([findRow(id)]))).forEach(forget);
    const shown = findRow(paneCard()?.dataset.card);
    if (shown && !rows.includes(shown) && shareTargets(touched, targetsOf([shown]))) {
      refreshWarnings().catch((error) => console.warn("The warnings could not be refreshed:", error.message));
    }
  };
  check();
  setTimeout(check, GRACE_MS + 1_000);
}

// A decision of this reader: the row leaves the list, a note offers to undo it, and the next card is shown.
document.addEventListener("card-decided", (event) => {
  const { form, body } = event.detail;
  const card = event.target;
  const row = findRow(card.dataset.card);
  const done = form.querySelector("[value=acknowledged]") ? "Acknowledged" : DONE[form.dataset.action];
  if (!done || !row) {
    return;
  }
  event.preventDefault();
  const what = form.dataset.action === "answer" ? body.text : lineOf(row);
  const seconds = form.dataset.action === "approve" ? Number(form.dataset.grace) : 0;
  const undo = seconds ? () => undoApproval(card.dataset.card) : null;
  showToast(`${done}: ${what.length > 80 ? `${what.slice(0, 79)}…` : what}`, { undo, seconds });
  leaveRow(row);
});

// Approvals from before the page was loaded can still be undone in the time that is left.
function offerEarlierUndo() {
  const now = Date.now() / 1000;
  const open = [...document.querySelectorAll("[data-undoable] > li")].filter((one) => Number(one.dataset.until) > now + 0.5);
  const left = Math.min(...open.map((one) => Number(one.dataset.until))) - now;
  if (open.length === 1) {
    const [{ dataset, textContent }] = open;
    showToast(`Approved: ${textContent.trim()}`, { undo: () => undoApproval(dataset.id), seconds: left });
  } else if (open.length > 1) {
    showToast(`Approved: ${open.length} cards.`, { undo: () => undoBulk(open.map((one) => one.dataset.id)), seconds: left });
  }
}

async function undoApproval(id) {
  const response = await post(`/api/approvals/${id}/undo`, {}).catch(() => null);
  const answer = await response?.json().catch(() => ({}));
  if (!response?.ok) {
    showToast(`Couldn’t undo: ${answer?.detail ?? "Gadget could not be reached"}.`);
    return;
  }
  wanted = String(answer.next_approval_id);
  showToast("Undone. The card is waiting for a decision again.");
  const row = findRow(wanted);
  if (row) {
    await select(row);
  }
}

// A bulk decision: decided rows leave the list, the others stay and say why.
async function decideInBulk(rows, action, reason) {
  const { done, kept, seconds } = await decideRows(rows, action, reason);
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
  noteTouched(done);
  clearPicks();
  const undo = action === "approve" && ids.length ? () => undoBulk(ids) : null;
  const rest = kept.length ? ` ${kept.length} not decided: ${kept[0][1]}.` : "";
  showToast(`${DONE[action]}: ${ids.length} ${ids.length === 1 ? "card" : "cards"}.${rest}`, { undo, seconds });
  if (isLeft) {
    await (next ? select(next) : showEmpty());
  }
  if ("isCut" in desk.dataset && allRows().length < FEW_ROWS) {
    await reload();
  }
}

async function undoBulk(ids) {
  const { undone, problem } = await undoRows(ids);
  const rest = problem ? ` ${ids.length - undone} not undone: ${problem}.` : "";
  showToast(`Undone: ${undone} ${undone === 1 ? "card is" : "cards are"} waiting again.${rest}`);
}

let wanted = ""; // the id of the card to select as soon as its row arrives

// A live message. Its numbers tell whether this list is complete; if not, it is loaded again.
async function follow({ pending, newest, gone = [], rows = "" }) {
  const added = rows.split("data-row=").length - 1;
  const isComplete = Number(desk.dataset.waiting) - gone.length + added === pending && newest <= newestOf(rows);
  Object.assign(desk.dataset, { waiting: String(pending), newest: String(newest) });
  const left = gone.map(findRow).filter(Boolean);
  const mustReload = !isComplete || (added > 0 && !isInDefaultOrder());
  if (!mustReload) {
    addRows(rows);
  }
  for (const row of left) {
    await showGone(row);
  }
  if (mustReload) {
    await reload();
  }
  removeGone();
  noteTouched([...left, ...[...rows.matchAll(/data-row="(\d+)"/g)].map(([, id]) => findRow(id)).filter(Boolean)]);
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
  if (!page) {
    return;
  }
  const selected = selectedRow();
  replaceRows(page);
  updateBar();
  awaitSnoozeEnd(Number(page.querySelector("[data-desk]").dataset.snoozeEnds ?? 0));
  if (selected?.isConnected && !selected.matches(".gone")) {
    await showGone(selected);
  }
}

// A snoozed card returns to the open list at its time.
let snoozeTimer = 0;

function awaitSnoozeEnd(seconds) {
  const left = seconds * 1000 - Date.now();
  clearTimeout(snoozeTimer);
  if (seconds && left < 2 ** 31 - 1) {
    snoozeTimer = setTimeout(reload, Math.max(left, 0) + 1_000);
  }
}

// The counts of the filters follow once nothing has happened for a while. A long list is too much to load for them.
let chipsTimer = 0;

function refreshChipsLater() {
  clearTimeout(chipsTimer);
  if (allRows().length <= FEW_ROWS) {
    chipsTimer = setTimeout(reload, IDLE_MS);
  }
}

let following = Promise.resolve();
document.addEventListener("inbox-changed", ({ detail }) => {
  refreshChipsLater();
  following = following.then(() => follow(detail)).catch((error) => console.warn("The list could not be updated:", error.message));
});

// The card that an edit has put in the place of another is selected in the list, too.
document.addEventListener("card-shown", ({ target }) => {
  shownAt = performance.now();
  const row = findRow(target.dataset.card);
  if (row && row !== selectedRow()) {
    markSelected(row);
    removeGone();
  } else if (!row && "open" in target.dataset) {
    wanted = target.dataset.card;
  }
});

function move(step) {
  const next = nextAfter(selectedRow(), step);
  next ? select(next) : announce(step > 0 ? "This is the last waiting card." : "This is the first waiting card.");
}

// Keys act on the selected row: as long as its card is not shown, they do nothing.
function isLoading() {
  const row = selectedRow();
  const isBehind = Boolean(row) && paneCard()?.dataset.card !== row.dataset.row;
  if (isBehind) {
    announce("The selected card is not shown yet.");
  }
  return isBehind;
}

// Nobody has read a card that was shown a moment ago: the key was meant for the one before.
function isTooEarly() {
  const isFast = performance.now() - shownAt < FAST_MS;
  if (isFast) {
    announce("This card has just appeared. Press the key again.");
  }
  return isFast;
}

// Calls `act` with the card if it waits and the reader may decide it.
function withCard(act) {
  const card = paneCard();
  if (isLoading()) {
    return;
  }
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

function approve(card) {
  const button = card.querySelector(".approve-button");
  if (isTooEarly()) {
    return;
  }
  if (card.querySelector(".actions > details[open]")) {
    announce("A form of this card is open. Send it, or leave it with Esc.");
  } else if (button.disabled || card.querySelector("[data-confirm]")) {
    goToMissing(card);
  } else {
    button.form.requestSubmit(button);
  }
}

// Enter goes to the card, or to what it still needs.
function goToCard() {
  const card = paneCard();
  if (card && !("open" in card.dataset)) {
    card.focus({ preventScroll: true });
    announce("This card is no longer waiting.");
  } else {
    withCard(unlessOwn(goToMissing));
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
  const answers = "form[data-action=answer] button[name=choice], .deny[open] button[name=preset]";
  const button = paneCard()?.querySelectorAll(answers)[number - 1];
  if (!isLoading() && !isTooEarly()) {
    button?.form.requestSubmit(button);
  }
}

async function snoozeRow(row) {
  const snoozed = await snooze(row.dataset.row);
  if (!snoozed) {
    return;
  }
  if (snoozed.problem) {
    showToast(`Couldn’t snooze: ${snoozed.problem}.`);
    return;
  }
  desk.dataset.snoozed = [...snoozedCalls(), row.dataset.order].join(" ");
  awaitSnoozeEnd(Math.min(snoozed.until, Number(desk.dataset.snoozeEnds ?? Infinity)));
  showToast(`Snoozed: ${lineOf(row)}`);
  await leaveRow(row);
}

function decidesInBulk() {
  const may = "mayDecide" in document.body.dataset;
  if (!may) {
    announce("Only approvers can decide cards.");
  }
  return may;
}

function openFormOf(target) {
  return target.closest("[data-card]")?.querySelector(".actions > details[open]");
}

function leaveForm(event) {
  const form = event.target.closest(".actions > details, .confirm, .answer") ?? openFormOf(event.target);
  const card = event.target.closest("[data-card]");
  if (event.key !== "Escape" || !form || (form.matches(".edit") && "edited" in card.dataset)) {
    return;
  }
  form.open = false;
  card.focus({ preventScroll: true });
}

if (desk) {
  startPresence();
  startClaims();
  offerEarlierUndo();
  desk.querySelector("[data-snooze-button]").addEventListener("click", () => selectedRow() && snoozeRow(selectedRow()));
  desk.querySelector("[data-take-button]")?.addEventListener("click", () => selectedRow() && take(selectedRow()));
  document.querySelector("[data-snooze-foot]").hidden = !selectedRow();
  awaitSnoozeEnd(Number(desk.dataset.snoozeEnds ?? 0));
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
    button.addEventListener("click", () => decidesInBulk() && summarize(button.dataset.bulkAct, decideInBulk));
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
    Enter: goToCard,
    o: () => paneCard()?.querySelector(".own-page")?.click(),
    a: () => withCard(unlessOwn(approve)),
    d: () => withCard(unlessOwn((card) => openForm(card, "deny", "[name=reason]"))),
    e: () => withCard((card) => openForm(card, "edit", FIELD)),
    u: undoLast,
    t: () => withCard(() => take(selectedRow())),
    s: () => selectedRow() && snoozeRow(selectedRow()),
    x: () => togglePick(selectedRow()),
    X: () => pickGroup(selectedRow()),
    A: () => decidesInBulk() && summarize("approve", decideInBulk),
    D: () => decidesInBulk() && summarize("deny", decideInBulk),
    ...digits,
  };
  listenForKeys(acts, new Set(["j", "k", "ArrowDown", "ArrowUp"]));
}
