// The list of waiting cards: one row each, at its place in the chosen order. One row is selected.
import { elementsFrom } from "../page/fragments.js";
import { localTimes } from "../page/times.js";

const desk = document.querySelector("[data-desk]");
const list = document.querySelector("[data-rows]");
const ORDERS = {
  expiry: (row) => [Number(row.dataset.expires)],
  risk: (row) => [-Number(row.dataset.risk), Number(row.dataset.order)],
  employee: (row) => [row.querySelector(".who").textContent.toLowerCase(), Number(row.dataset.order)],
};
const oldest = (row) => [Number(row.dataset.order), Number(row.dataset.row)];

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

// Shows the number of rows of each group; a group of less than two is none any more.
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

// Adds the rows of a live message that pass the page's filters.
export function addRows(html) {
  for (const row of elementsFrom(html).filter((one) => one.matches("[data-row]"))) {
    if (!findRow(row.dataset.row) && passesFilters(row)) {
      linkOf(row).href = `?${desk.dataset.query}card=${row.dataset.row}`;
      list.insertBefore(row, findPlace(row));
    }
  }
  localTimes(list);
}

// The page's address has its filters; the search looks through the row's words as the server does.
function passesFilters(row) {
  const filters = new URLSearchParams(desk.dataset.query);
  const words = (filters.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const text = row.textContent.toLowerCase();
  const isEqual = (name) => !filters.get(name) || filters.get(name) === row.dataset[name];
  return isEqual("employee") && isEqual("tool") && isEqual("level") && words.every((word) => text.includes(word));
}

function findPlace(row) {
  const key = ORDERS[desk.dataset.sort] ?? oldest;
  const own = key(row);
  const after = allRows().find((other) => !other.matches(".grouped") && compare(key(other), own) > 0);
  return after ?? null;
}

function compare(one, other) {
  const at = one.findIndex((value, index) => value !== other[index]);
  return at < 0 ? 0 : one[at] < other[at] ? -1 : 1;
}
