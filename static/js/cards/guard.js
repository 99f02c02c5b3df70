// Guards the Approve button. It is disabled while the edit form has values that the card does not show. On a destructive
// card it is also disabled until the whole list and every shortened value have been opened, and the confirmation typed.
const isDestructive = (card) => card.classList.contains("level-destructive");
const normalizeSpaces = (text) => text.trim().split(/\s+/).join(" ");

function findFolded(card) {
  return [...card.querySelectorAll(".clamp, .rest")].filter((part) => part.closest(".sentence, .facts, .effect, .changed"));
}

export function updateApproveButton(card) {
  const unread = isDestructive(card) ? findFolded(card).filter((part) => !("read" in part.dataset)) : [];
  const confirm = card.querySelector("[data-confirm]");
  const isConfirmed = !confirm || normalizeSpaces(confirm.value) === normalizeSpaces(confirm.dataset.confirm);
  const isEdited = "edited" in card.dataset;
  card.querySelector(".approve-button").disabled = unread.length > 0 || !isConfirmed || isEdited;
  card.querySelector("[data-unread]").hidden = !unread.length;
  const what = card.querySelector("[data-unread-what]");
  what.textContent = describeUnread(unread, what.dataset.list);
  card.querySelector("[data-unsaved]").hidden = !isEdited;
}

function describeUnread(unread, list) {
  const has = (selector) => unread.some((part) => part.matches(selector));
  return [has(".rest") && list, has(".clamp") && "the shortened values"].filter(Boolean).join(" and ");
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
  updateApproveButton(card);
}
