// The list of waiting cards: one row each. One row is selected.
import { elementsFrom } from "../page/fragments.js";
import { localTimes } from "../page/times.js";

const desk = document.querySelector("[data-desk]");
const list = document.querySelector("[data-rows]");
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

// Returns the row that follows, or at the end of the list the one before.
export function neighborOf(row) {
  const rows = allRows();
  const at = rows.indexOf(row);
  return rows[at + 1] ?? rows[at - 1] ?? null;
}

export function nextAfter(row, step) {
  const rows = allRows();
  return row ? rows[rows.indexOf(row) + step] : rows[0];
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
  return allRows().find((other) => !other.matches(".grouped") && isOlder(row, other)) ?? null;
}

function isOlder(row, other) {
  const [own, its] = [row, other].map(({ dataset }) => [Number(dataset.order), Number(dataset.row)]);
  return own[0] < its[0] || (own[0] === its[0] && own[1] < its[1]);
}

// Shows the rows and filters of a page that was loaded again. What is selected, picked and in focus stays so; a selected
// card that no longer waits keeps its row.
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
  localTimes(list);
}

// A name that is being typed for a view is kept.
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
