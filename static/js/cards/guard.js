// Guards the Approve button. It is disabled while the edit form has values that the card does not show, and above draft
// level until everything folded has been opened. On a destructive card, that includes every item of a long list. Where a
// confirmation is asked for, it must be typed.
import { announce } from "../page/announce.js";

const SHOWN = ".sentence, .facts, .effect, .changed";
const LIST = ".rest:not(.values)";
const IN_LIST = `${LIST} :is(.clamp, .values)`;
const normalizeSpaces = (text) => text.trim().split(/\s+/).join(" ");
const mustBeRead = (card) => card.matches(".level-write, .level-destructive");
const mustBeReadWhole = (card) => card.matches(".level-destructive") || Boolean(card.querySelector("[data-confirm]"));

function findFolded(card) {
  return [...card.querySelectorAll(".clamp, .rest")].filter((part) => part.closest(SHOWN));
}

// The parts that have to be opened first. Below destructive level, a long list of targets need only be unfolded.
function findUnread(card) {
  if (!mustBeRead(card)) {
    return [];
  }
  const isWhole = mustBeReadWhole(card);
  return findFolded(card).filter((part) => !("read" in part.dataset) && (isWhole || !part.matches(IN_LIST)));
}

const isConfirmed = (confirm) => !confirm || normalizeSpaces(confirm.value) === normalizeSpaces(confirm.dataset.confirm);

export function updateApproveButton(card) {
  const button = card.querySelector(".approve-button");
  if (!button) {
    return; // there is nothing to approve
  }
  const unread = findUnread(card);
  const isElsewhere = mustBeReadWhole(card) && Boolean(card.querySelector("[data-elsewhere]"));
  const isEdited = "edited" in card.dataset;
  const isReady = isConfirmed(card.querySelector("[data-confirm]"));
  button.disabled = unread.length > 0 || isElsewhere || !isReady || isEdited;
  card.querySelector("[data-unread]").hidden = !unread.length && !isElsewhere;
  const what = card.querySelector("[data-unread-what]");
  what.textContent = describeUnread(unread, isElsewhere, what.dataset.list);
  card.querySelector("[data-open-all]").hidden = !unread.length;
  card.querySelector("[data-unsaved]").hidden = !isEdited;
}

function describeUnread(unread, isElsewhere, list) {
  const has = (selector) => unread.some((part) => part.matches(selector));
  const parts = [(isElsewhere || has(LIST)) && list, has(".values") && "the other values", has(".clamp") && "the shortened values"];
  return parts.filter(Boolean).join(" and ");
}

// Moves the focus to the next step that the card needs before approval, and announces the step; if none is missing, to
// Approve. If everything is already done, the card can only be dismissed.
export function moveToMissing(card) {
  const dismiss = card.querySelector(".dismiss-button");
  if (dismiss) {
    moveTo(dismiss, "This is already done. Press Enter to dismiss the card.");
    return;
  }
  const [unread] = findUnread(card);
  const confirm = card.querySelector("[data-confirm]");
  const hints = [...card.querySelectorAll(".hint:not([hidden], .unread-without-scripts)")];
  if (unread) {
    unread.parentElement.closest("details:not([open])")?.setAttribute("open", "");
    moveTo(unread.querySelector("summary"), "Open this to continue.");
  } else if (hints.length) {
    moveTo(hints[0].querySelector("a") ?? card, hints[0].textContent.trim());
  } else if (!isConfirmed(confirm)) {
    moveTo(confirm, `Type “${confirm.dataset.confirm}” to confirm.`);
  } else {
    moveTo(card.querySelector(".approve-button"), "Press Enter again to approve.");
  }
}

function moveTo(element, words) {
  element.focus({ preventScroll: true });
  element.scrollIntoView({ block: "nearest" });
  announce(words);
}

// Enter on the card itself, or in an incomplete confirmation, would do nothing; it moves to the next step instead.
function guideEnter(event) {
  const card = event.currentTarget;
  const isStuck = event.target === card || (event.target.matches("[data-confirm]") && card.querySelector(".approve-button").disabled);
  if (event.key === "Enter" && isStuck && !event.isComposing && !("locked" in card.dataset) && !("isBarred" in card.dataset)) {
    event.preventDefault();
    moveToMissing(card);
  }
}

export function guardApprove(card) {
  for (const part of findFolded(card)) {
    part.addEventListener("toggle", () => {
      part.dataset.read = "";
      updateApproveButton(card);
    });
  }
  card.querySelector("[data-confirm]")?.addEventListener("input", () => updateApproveButton(card));
  card.querySelector("[data-open-all]")?.addEventListener("click", () => findFolded(card).forEach((part) => (part.open = true)));
  card.addEventListener("keydown", guideEnter);
  updateApproveButton(card);
}
