// Selected cards, and their bulk decision: first a summary, then one outcome for each row.
import { announce } from "../page/announce.js";
import { post } from "../page/requests.js";
import { readSpoken } from "../page/spoken_text.js";
import { summarizeValues } from "./bulk_summary.js";
import { allRows, linkOf } from "./rows.js";
import { showToast } from "./toasts.js";

const bar = document.querySelector("[data-bulk]");
const dialog = document.querySelector("[data-bulk-summary]");
const AT_ONCE = 50;
const GRACE_S = 5;
const GRACE_OF_A_HUNDRED_S = 3; // for each hundred, so that the first calls still wait when the last are decided
const INERT_MS = 400;
const MAX_NAMED = 8;
const boxOf = (row) => row.querySelector("[data-pick]");
export const pickedRows = () => allRows().filter((row) => boxOf(row)?.checked);

export function togglePick(row) {
  const box = boxOf(row);
  if (!box) {
    showToast("This card must be decided individually.", { isRefusal: true });
    return;
  }
  box.checked = !box.checked;
  updateBar();
}

// True if another person has taken the card of this row.
function isTaken(row) {
  return !["", document.body.dataset.user].includes(row.querySelector("[data-taken]").dataset.taken);
}

// Selects the rows of the same shape that have no warning and that nobody else has taken; unselects them if all are selected.
export function pickGroup(row) {
  const group = allRows().filter((other) => other.dataset.shape && other.dataset.shape === row.dataset.shape);
  const plain = group.filter((other) => boxOf(other) && !("odd" in other.dataset) && !isTaken(other));
  if (plain.length === 0) {
    showToast("This card must be decided individually.", { isRefusal: true });
    return;
  }
  const areAll = plain.every((other) => boxOf(other).checked);
  plain.forEach((other) => (boxOf(other).checked = !areAll));
  updateBar();
  const left = group.length - plain.length;
  announce(`${pickedRows().length} selected.${left ? ` ${left} left to decide individually.` : ""}`);
}

export function clearPicks() {
  pickedRows().forEach((row) => (boxOf(row).checked = false));
  updateBar();
}

export function updateBar() {
  const count = pickedRows().length;
  bar.hidden = count === 0;
  bar.querySelector("[data-bulk-count]").textContent = String(count);
}

// Names each of a few cards; of many, counts those of each tool.
function describe(rows) {
  if (rows.length <= MAX_NAMED) {
    return rows.map((row) => `${row.dataset.title}: ${lineOf(row)}`);
  }
  const counts = new Map();
  rows.forEach((row) => counts.set(row.dataset.title, (counts.get(row.dataset.title) ?? 0) + 1));
  return [...counts].map(([title, count]) => `${count} × ${title}`);
}

function fillList(list, texts) {
  list.replaceChildren(...texts.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
}

// Shows a summary of the decision, and calls `decide` if the reader confirms it.
export function summarize(action, decide) {
  const rows = pickedRows();
  if (rows.length === 0) {
    showToast("Select cards first, with x.", { isRefusal: true });
    return;
  }
  const verb = action === "approve" ? "Approve" : "Deny";
  dialog.querySelector("[data-bulk-title]").textContent = `${verb} ${rows.length} ${rows.length === 1 ? "card" : "cards"}?`;
  fillList(dialog.querySelector("[data-bulk-tools]"), describe(rows));
  const values = rows.length > 1 ? summarizeValues(rows) : [];
  fillList(dialog.querySelector("[data-bulk-values]"), values);
  dialog.querySelector("[data-bulk-compared]").hidden = values.length === 0;
  const odd = rows.filter((row) => "odd" in row.dataset);
  fillList(dialog.querySelector("[data-bulk-odd-rows]"), odd.map((row) => `${lineOf(row)} (${row.dataset.odd})`));
  dialog.querySelector("[data-bulk-odd]").hidden = odd.length === 0;
  const fresh = new Set(rows.flatMap((row) => row.dataset.new || []));
  fillList(dialog.querySelector("[data-bulk-new-contacts]"), [...fresh]);
  dialog.querySelector("[data-bulk-new]").hidden = fresh.size === 0;
  dialog.querySelector("[data-bulk-reason]").hidden = action !== "deny";
  const reason = dialog.querySelector("[name=bulk-reason]");
  for (const preset of dialog.querySelectorAll("[data-bulk-preset]")) {
    preset.onclick = () => {
      reason.value = preset.value;
      reason.dispatchEvent(new Event("input"));
      reason.focus();
    };
  }
  const told = dialog.querySelector("[data-bulk-told]");
  const tellReason = () => {
    const text = reason.value.trim();
    told.textContent = text ? `All ${rows.length} are denied with this reason: “${text}”.` : `All ${rows.length} are denied without a reason.`;
  };
  reason.oninput = tellReason;
  tellReason();
  const confirm = dialog.querySelector("[data-bulk-confirm]");
  confirm.textContent = `${verb} ${rows.length} ${rows.length === 1 ? "card" : "cards"}`;
  openedAt = performance.now();
  dialog.onclose = () => {
    if (dialog.returnValue === "confirm") {
      decide(rows, action, reason.value.trim());
    }
    reason.value = "";
    dialog.returnValue = "";
  };
  dialog.showModal();
}

// A click that was meant for what was there before the summary does nothing.
let openedAt = 0;
dialog?.addEventListener("click", (event) => {
  if (event.detail > 0 && performance.now() - openedAt < INERT_MS) {
    event.preventDefault();
  }
});

// Enter confirms the summary wherever the focus is in it, except on its buttons.
dialog?.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.repeat && !event.isComposing && !event.target.matches("button")) {
    event.preventDefault();
    dialog.querySelector("[data-bulk-confirm]").click();
  }
});

export const lineOf = (row) => readSpoken(linkOf(row).querySelector(".line"));

// A UUID, also on pages without https, where browsers offer none.
function makeId() {
  const byte = () => crypto.getRandomValues(new Uint8Array(1))[0];
  return crypto.randomUUID?.() ?? "10000000-1000-4000-8000-100000000000".replace(/[018]/g, (digit) => (digit ^ (byte() & (15 >> (digit / 4)))).toString(16));
}

// Decides the rows, and reports after each request how many are done. Returns those that were decided, those that need
// more people, the others with the reason why they stay, the id of the bulk, and the seconds in which it can be undone.
export async function decideRows(rows, action, reason, tell) {
  const done = [];
  const kept = [];
  const voted = [];
  const bulkId = rows.length > 1 ? makeId() : undefined; // the requests are one bulk decision
  const grace = GRACE_S + GRACE_OF_A_HUNDRED_S * Math.floor(rows.length / 100);
  for (let at = 0; at < rows.length; at += AT_ONCE) {
    const some = rows.slice(at, at + AT_ONCE);
    tell(at);
    const decisions = some.map((row) => ({
      approval_id: Number(row.dataset.row),
      action,
      digest: row.dataset.digest,
      decision_id: (row.dataset[`${action}Id`] ??= makeId()),
      // The summary has listed the contacts that are new here.
      ...(action === "deny" ? { reason } : { grace_s: grace, seen_marks: "new" in row.dataset ? ["new"] : [] }),
    }));
    const { data, detail } = await post("/api/approvals/decide", { decisions, bulk_id: bulkId });
    some.forEach((row, index) => {
      const outcome = data.outcomes?.[index] ?? { status: 0, detail };
      if (outcome.status === 202) {
        voted.push(row);
      } else {
        outcome.status === 200 ? done.push(row) : kept.push([row, outcome.detail]);
      }
    });
  }
  return { done, kept, voted, bulkId, seconds: GRACE_S };
}
