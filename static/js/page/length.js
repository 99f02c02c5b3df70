// Counts the characters of text fields. A note appears when a text is nearly or already too long.
const NOTE_FROM = 0.9;

function countCharacters(text) {
  return [...text.replace(/\r\n/g, "\n").trim()].length;
}

function updateNote(area, note) {
  const max = Number(area.dataset.maxLength);
  const length = countCharacters(area.value);
  const excess = length - max;
  const counted = `${length.toLocaleString("en")} of ${max.toLocaleString("en")} characters`;
  note.textContent = excess > 0 ? `${counted}: ${excess.toLocaleString("en")} too many.` : counted;
  note.hidden = length < max * NOTE_FROM;
  note.classList.toggle("bad", excess > 0);
  area.setCustomValidity(excess > 0 ? `${counted}: shorten it by ${excess.toLocaleString("en")}.` : "");
}

export function watchLengths() {
  for (const area of document.querySelectorAll("textarea[data-max-length]:not([data-counted])")) {
    area.dataset.counted = "";
    const note = area.form.querySelector("[data-length]");
    area.addEventListener("input", () => updateNote(area, note));
    updateNote(area, note);
  }
}
