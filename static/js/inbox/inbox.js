// The inbox: a list of waiting cards beside the selected one. After a decision the next card is shown automatically; keys
// move through the list and decide; live messages add and remove single rows.
import { refreshCard, refreshIfChanged } from "../cards/cards.js";
import { listenForKeys } from "../frame/keys.js";
import { announce } from "../page/announce.js";
import { fetchPage } from "../page/fragments.js";
import { post } from "../page/requests.js";
import { readSpoken } from "../page/spoken_text.js";
import { fetchAhead, fetchedIds, forget, hideNothing, paneCard, refreshWarnings, showCardOf, showFailure, showNothing } from "./pane.js";
import { clearPicks, decideRows, lineOf, pickGroup, summarize, togglePick, updateBar } from "./selection.js";
import {
  addRows, allRows, findRow, isInDefaultOrder, linkOf, markSelected, neighborOf, nextAfter, nextOwn, removeRow, replaceRows,
  selectedRow, shareTargets, showVoters, snoozedCalls, startFolding, targetsOf, votersOf,
} from "./rows.js";
import {
  approve, choose, goToCard, isBehind, leaveForm, noteShown, openForm, openPage, refuse, unlessOwn, withCard, withRow,
} from "./acts.js";
import { startAttention, take } from "./attention.js";
import { snooze } from "./snooze.js";
import { undoBulk } from "./bulk_undo.js";
import { showProgress, showToast, undoNewest } from "./toasts.js";

const desk = document.querySelector("[data-desk]");
const MAX_OFFERED = 3;
const FEW_IN_BULK = 50; // more take several requests
const DOING = { approve: "Approving", deny: "Denying" };
const DONE = { approve: "Approved", deny: "Denied", dismiss: "Dismissed", answer: "Answered", resolve: "Resolved" };
const GRACE_MS = 5_000;
const FEW_ROWS = 50;
const IDLE_MS = 6_000;
const NAME_AFTER_MS = 1_000;

// Selects a row, names it and shows its card. With `takesFocus`, the row also takes the focus, as it does from another
// row. The list may be loaded again meanwhile, so the row is found by its id.
async function select(row, takesFocus = document.activeElement?.closest("[data-row]")) {
  const isSelected = () => selectedRow()?.dataset.row === row.dataset.row;
  markSelected(row);
  if (takesFocus) {
    linkOf(row).focus({ preventScroll: true });
  }
  announce(nameOf(row), { joins: true });
  removeGone();
  hideNothing();
  try {
    await showCardOf(row, isSelected);
  } catch {
    if (isSelected()) {
      showFailure(() => select(findRow(row.dataset.row) ?? row));
    }
    return;
  }
  if (!isSelected()) {
    return;
  }
  noteShown();
  document.querySelector("[data-snooze-foot]").hidden = false;
  document.dispatchEvent(new CustomEvent("card-selected"));
  history.replaceState(null, "", `?${desk.dataset.query}card=${row.dataset.row}`);
  document.querySelector("[data-end-snooze]")?.setAttribute("action", `/approvals/${row.dataset.row}/snooze/end/`);
  fetchAhead([nextAfter(selectedRow(), 1), nextAfter(selectedRow(), 2)].filter(Boolean));
}

function nameOf(row) {
  const rows = allRows();
  return `Card ${rows.indexOf(row) + 1} of ${rows.length}: ${lineOf(row)}`;
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

// Refreshes the other cards that affect the same targets: they name each other, and may no longer run as shown after
// these rows were decided, and again after their calls have run.
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
  const what = form.dataset.action === "answer" ? `“${body.text}”` : lineOf(row);
  const seconds = form.dataset.action === "approve" ? Number(form.dataset.grace) : 0;
  const undo = seconds ? () => undoApproval(card.dataset.card) : null;
  showToast(`${done}: ${what.length > 80 ? `${what.slice(0, 79)}…` : what}`, { undo, seconds });
  leaveRow(row);
});

// A vote of this reader on a card that needs more people: the row moves to those that wait for others, and the next card
// that this reader can decide is shown.
document.addEventListener("card-voted", async (event) => {
  const card = event.target;
  const row = findRow(card.dataset.card);
  if (!row) {
    return;
  }
  event.preventDefault();
  const next = nextOwn(row);
  const hadFocus = row.contains(document.activeElement);
  forget(row.dataset.row);
  showVoters(row, [...votersOf(row), document.body.dataset.user]);
  const { needs } = event.detail;
  showToast(`Your approval counts. Still needed: ${needs}.`, { undo: () => withdrawVote(row.dataset.row), seconds: GRACE_MS / 1000 });
  await (next ? select(next, hadFocus) : refreshCard(card, false));
});

document.addEventListener("card-changed", ({ detail: { approval_id: id, approved_by: names } }) => {
  const row = names && findRow(id);
  if (row) {
    forget(id);
    showVoters(row, names);
  }
});

async function withdrawVote(id) {
  const { ok, detail } = await post(`/api/approvals/${id}/undo`);
  showToast(ok ? "Your approval is withdrawn. The card is waiting again." : `Couldn’t withdraw: ${detail}.`);
  const row = findRow(id);
  if (ok && row) {
    forget(id);
    showVoters(row, votersOf(row).filter((name) => name !== document.body.dataset.user));
    await select(row);
  }
}

// Approvals from before the page was loaded can still be undone in the time that is left.
function offerEarlierUndo() {
  const now = Date.now() / 1000;
  const open = [...document.querySelectorAll("[data-undoable] > li")].filter((one) => Number(one.dataset.until) > now + 0.5);
  for (const one of open.slice(-MAX_OFFERED)) {
    const count = Number(one.dataset.count);
    const what = one.dataset.bulkId ? `${count} ${count === 1 ? "card" : "cards"}.` : readSpoken(one.querySelector("[data-line]"));
    showToast(`Approved: ${what}`, { undo: () => undoEarlier(one), seconds: Number(one.dataset.until) - now });
  }
}

const undoEarlier = (one) => (one.dataset.bulkId ? undoBulk(one.dataset.bulkId) : undoApproval(one.dataset.id));

// Undoes the last approval: one of this page, else one from another tab or the reader's vote on the shown card.
async function undoLast() {
  if (undoNewest()) {
    return;
  }
  const shown = isBehind() ? null : paneCard()?.querySelector("form.undo:not([hidden])");
  if (shown) {
    shown.requestSubmit();
    return;
  }
  const page = await fetchPage(location.pathname).catch(() => null);
  const newest = [...(page?.querySelectorAll("[data-undoable] > li") ?? [])].at(-1);
  newest ? undoEarlier(newest) : refuse("No approval can be undone.");
}

async function undoApproval(id) {
  const { ok, data, detail } = await post(`/api/approvals/${id}/undo`);
  if (!ok) {
    showToast(`Couldn’t undo: ${detail}.`);
    return;
  }
  wanted = String(data.next_approval_id);
  showToast("Undone. The card is waiting for a decision again.");
  const row = findRow(wanted);
  if (row) {
    await select(row);
  }
}

// A bulk decision: decided rows leave the list, the others stay and say why.
async function decideInBulk(rows, action, reason) {
  const progress = rows.length > FEW_IN_BULK ? showProgress(`${DOING[action]} ${rows.length} cards…`) : null;
  const { done, kept, voted, bulkId, seconds } = await decideRows(rows, action, reason, (count) => {
    progress?.tell(`${DOING[action]} ${rows.length} cards: ${count} done.`);
  });
  progress?.end();
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
  voted.forEach((row) => showVoters(row, [...votersOf(row), document.body.dataset.user]));
  noteTouched(done);
  clearPicks();
  const undoOne = () => (ids.length ? undoApproval(ids[0]) : withdrawVote(voted[0].dataset.row));
  const undo = action === "approve" && ids.length + voted.length ? () => (bulkId ? undoBulk(bulkId) : undoOne()) : null;
  const rest = kept.length ? ` ${kept.length} not decided: ${kept[0][1]}.` : "";
  const more = voted.length ? ` ${voted.length} ${voted.length === 1 ? "needs" : "need"} more people.` : "";
  showToast(`${DONE[action]}: ${ids.length} ${ids.length === 1 ? "card" : "cards"}.${more}${rest}`, { undo, seconds });
  if (isLeft) {
    await (next ? select(next) : showEmpty());
  }
  if ("isCut" in desk.dataset && allRows().length < FEW_ROWS) {
    await reload();
  }
}

let wanted = ""; // the id of the card to select as soon as its row arrives

// A live message. Its numbers tell whether this list is complete; if not, it is loaded again.
async function follow({ pending, newest, gone = [], rows = "" }) {
  const known = Number(desk.dataset.newest);
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
  announceNew(known);
  const row = findRow(wanted);
  if (row) {
    wanted = "";
    await select(row);
  } else if (!selectedRow() && allRows().length) {
    await select(allRows()[0]);
  }
}

// Announces the cards that have just come into the list; a card that this reader has brought back is named when it is selected.
function announceNew(known) {
  const fresh = allRows().filter(({ dataset: { row } }) => Number(row) > known && row !== wanted);
  if (fresh.length) {
    const names = fresh.length > 1 ? `${fresh.length} new cards.` : `New card: ${lineOf(fresh[0])}`;
    announce(`${names} ${allRows().length} waiting.`);
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
  await refreshIfChanged(paneCard(), "Someone else just changed this card. ");
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

// The counts of the filters are updated once nothing has happened for a while; for a long list, that would load too
// much.
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
  noteShown();
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
  next ? select(next, !paneCard()?.contains(document.activeElement)) : refuse(step > 0 ? "This is the last waiting card." : "This is the first waiting card.");
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
    refuse("Only approvers can decide cards.");
  }
  return may;
}

if (desk) {
  startAttention();
  startFolding();
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
  document.addEventListener("keydown", leaveForm);
  desk.addEventListener("change", (event) => event.target.matches("[data-pick]") && updateBar());
  for (const button of desk.querySelectorAll("[data-bulk-act]")) {
    button.addEventListener("click", () => decidesInBulk() && summarize(button.dataset.bulkAct, decideInBulk));
  }
  desk.querySelector("[data-bulk-clear]").addEventListener("click", clearPicks);
  const first = selectedRow();
  if (first) {
    setTimeout(() => selectedRow() === first && announce(nameOf(first)), NAME_AFTER_MS); // once the page's title is read
    fetchAhead([nextAfter(first, 1), nextAfter(first, 2)].filter(Boolean));
  }
  const digits = Object.fromEntries([1, 2, 3, 4, 5, 6, 7, 8, 9].map((number) => [String(number), () => choose(number)]));
  const acts = {
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Enter: goToCard,
    o: () => withRow(openPage),
    a: () => withCard(unlessOwn(approve)),
    d: () => withCard(unlessOwn((card) => openForm(card, "deny"))),
    e: () => withCard((card) => openForm(card, "edit")),
    u: undoLast,
    t: () => withCard(() => take(selectedRow())),
    s: () => withRow(snoozeRow),
    x: () => withRow(togglePick),
    X: () => withRow(pickGroup),
    A: () => decidesInBulk() && summarize("approve", decideInBulk),
    D: () => decidesInBulk() && summarize("deny", decideInBulk),
    ...digits,
  };
  listenForKeys(acts, new Set(["j", "k", "ArrowDown", "ArrowUp"]), refuse);
}
