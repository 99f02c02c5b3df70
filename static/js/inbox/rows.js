// The list of waiting cards: one row each. One row is selected.
import { elementsFrom } from "../page/fragments.js";
import { localTimes } from "../page/times.js";

const desk = document.querySelector("[data-desk]");
const list = document.querySelector("[data-rows]");
const FOLD_KEY = "gadget-waits-folded";
export const allRows = () => [...list.querySelectorAll("[data-row]")];
export const findRow = (id) => document.getElementById(`row-${id}`);
export const linkOf = (row) => row.querySelector("a");
export const selectedRow = () => list.querySelector("[data-row]:has(> a[aria-current])");

export function markSelected(row) {
  selectedRow()?.querySelector("a").removeAttribute("aria-current");
  if (row) {
    linkOf(row).setAttribute("aria-current", "true");
    row.scrollIntoView({ block: "nearest" });
  }
}

// The rows that the reader sees, and this row. Folded ones are left out.
function shownRows(row) {
  return allRows().filter((other) => other === row || !other.matches(".folded > .waits"));
}

// Returns the row that follows, or at the end of the list the one before. Those that wait for others come last.
export function neighborOf(row) {
  const rows = shownRows(row);
  const at = rows.indexOf(row);
  return nextOwn(row) ?? rows[at + 1] ?? rows[at - 1] ?? null;
}

// Returns the next row that does not wait for others, or the last one before; null without one.
export function nextOwn(row) {
  const rows = allRows();
  const isOwn = (other) => other !== row && !other.matches(".waits");
  const at = rows.indexOf(row);
  return rows.slice(at).find(isOwn) ?? rows.slice(0, at).findLast(isOwn) ?? null;
}

export function nextAfter(row, step) {
  const rows = shownRows(row);
  return row ? rows[rows.indexOf(row) + step] : rows[0];
}

export const votersOf = (row) => row.querySelector("[data-voters]").dataset.voters.split(" ").filter(Boolean);

// Shows who has approved the card of this row. Cards that the reader has approved wait for others, so their rows are at
// the end, where they can be folded.
export function showVoters(row, names) {
  const place = row.querySelector("[data-voters]");
  const mine = names.includes(document.body.dataset.user);
  place.dataset.voters = [...new Set(names)].join(" ");
  const count = `${names.length} ${names.length === 1 ? "approval" : "approvals"} · `;
  place.textContent = mine ? "you approved, waiting for others · " : names.length ? count : "";
  if (mine !== row.matches(".waits")) {
    const hadFocus = row.contains(document.activeElement);
    leaveGroup(row);
    row.classList.toggle("waits", mine);
    list.insertBefore(row, mine ? null : findPlace(row));
    if (hadFocus) {
      linkOf(row).focus({ preventScroll: true });
    }
    updateGroups();
  }
}

// Outside its group, a row also names the tool to which its values belong.
function leaveGroup(row) {
  if (row.matches(".grouped") && row.querySelector("[data-in-group], .line > .pair")) {
    row.querySelector(".line").prepend(Object.assign(document.createElement("b"), { textContent: `${row.dataset.title}: ` }));
  }
  row.classList.remove("grouped");
}

const waitsHead = () => list.querySelector("[data-waits-head]");

function updateWaits() {
  const count = list.querySelectorAll(".row.waits").length;
  waitsHead().hidden = count === 0;
  waitsHead().querySelector("[data-waits-count]").textContent = String(count);
  waitsHead().querySelector("[data-fold]").setAttribute("aria-expanded", String(!list.matches(".folded")));
}

// The rows that wait for others can be folded; the browser remembers it as long as its tab is open.
export function startFolding() {
  list.classList.toggle("folded", readFold() === "yes");
  updateWaits();
  list.addEventListener("click", (event) => {
    if (event.target.closest("[data-fold]")) {
      const isFolded = list.classList.toggle("folded");
      writeFold(isFolded ? "yes" : "no");
      updateWaits();
    }
  });
}

function readFold() {
  try {
    return sessionStorage.getItem(FOLD_KEY);
  } catch {
    return null;
  }
}

function writeFold(value) {
  try {
    sessionStorage.setItem(FOLD_KEY, value);
  } catch {
    // Without storage, the next page shows them again.
  }
}

export function removeRow(row) {
  row.remove();
  updateGroups();
}

// Shows the number of rows of each group; an empty group loses its heading.
function updateGroups() {
  for (const head of list.querySelectorAll("[data-group]")) {
    const count = rowsOfGroup(head).length;
    head.querySelector("[data-group-count]").textContent = String(count);
    if (count === 0) {
      head.remove();
    }
  }
  updateWaits();
}

function rowsOfGroup(head) {
  const rows = [];
  for (let next = head.nextElementSibling; next?.matches(`.grouped[data-shape="${head.dataset.group}"]`); next = next.nextElementSibling) {
    rows.push(next);
  }
  return rows;
}

// Adds the rows of a live message, in the default order. A list in another order or with filters is loaded again instead.
export function addRows(html) {
  for (const row of elementsFrom(html).filter((one) => one.matches("[data-row]"))) {
    if (!findRow(row.dataset.row) && !snoozedCalls().has(row.dataset.order)) {
      const head = list.querySelector(`[data-group="${row.dataset.shape}"]`);
      chooseLine(row, head);
      list.insertBefore(row, head ? findPlaceInGroup(row, head) : findPlace(row));
      showVoters(row, votersOf(row));
    }
  }
  updateGroups();
  localTimes(list);
}

// A new row comes with two lines: its values for a place in its group, its sentence for a place of its own.
function chooseLine(row, head) {
  row.classList.toggle("grouped", Boolean(head));
  row.querySelector(head ? "[data-alone]" : "[data-in-group]")?.remove();
}

export const isInDefaultOrder = () => !desk.dataset.query;

// The calls whose cards the reader has snoozed.
export const snoozedCalls = () => new Set(desk.dataset.snoozed.split(" ").filter(Boolean));

// In a group, the rows to be decided individually come first.
function findPlaceInGroup(row, head) {
  const isPlain = (one) => Boolean(one.querySelector("[data-pick]")) && !("odd" in one.dataset);
  const rows = rowsOfGroup(head);
  const after = rows.find((other) => (isPlain(other) === isPlain(row) ? isOlder(row, other) : isPlain(other)));
  return after ?? (rows.at(-1) ?? head).nextElementSibling;
}

function findPlace(row) {
  return allRows().find((other) => !other.matches(".grouped, .waits") && isOlder(row, other)) ?? waitsHead();
}

function isOlder(row, other) {
  const [own, its] = [row, other].map(({ dataset }) => [Number(dataset.order), Number(dataset.row)]);
  return own[0] < its[0] || (own[0] === its[0] && own[1] < its[1]);
}

// Shows the rows and filters of a page that was loaded again. The selected row, the picked rows and the focus are kept;
// a selected card that no longer waits keeps its row.
export function replaceRows(page) {
  const selected = selectedRow();
  const next = selected && allRows()[allRows().indexOf(selected) + 1];
  const picked = allRows().filter((row) => row.querySelector("[data-pick]")?.checked);
  const focused = document.activeElement?.closest("[data-row]");
  const { dataset } = page.querySelector("[data-desk]");
  Object.assign(desk.dataset, { waiting: dataset.waiting, newest: dataset.newest, snoozed: dataset.snoozed });
  desk.toggleAttribute("data-is-cut", "isCut" in dataset);
  list.replaceChildren(...elementsFrom(page.querySelector("[data-rows]").innerHTML));
  if (selected && !findRow(selected.dataset.row)) {
    list.insertBefore(selected, (next && findRow(next.dataset.row)) ?? null);
  }
  selectedRow()?.querySelector("a").removeAttribute("aria-current");
  if (selected) {
    linkOf(findRow(selected.dataset.row)).setAttribute("aria-current", "true");
  }
  picked.map((row) => findRow(row.dataset.row)?.querySelector("[data-pick]")).forEach((box) => box && (box.checked = true));
  if (focused && findRow(focused.dataset.row)) {
    linkOf(findRow(focused.dataset.row)).focus({ preventScroll: true });
  }
  replaceChips(page.querySelector("[data-chips]"));
  updateWaits();
  localTimes(list);
}

// Keeps the name that the reader is typing for a view.
function replaceChips(fresh) {
  const chips = desk.querySelector("[data-chips]");
  if (!chips.contains(document.activeElement) && !chips.querySelector("details[open]")) {
    chips.replaceChildren(...elementsFrom(fresh.innerHTML));
  }
}

// The targets that these cards affect. Cards with a common one name each other.
export const targetsOf = (rows) => new Set(rows.flatMap((row) => row.dataset.targets.split(" ").filter(Boolean)));

export function shareTargets(some, others) {
  return [...some].some((target) => target === "*" || others.has("*") || others.has(target));
}
