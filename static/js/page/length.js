// The length of a text: a note says when it is nearly or already too long, before it is sent.
const NOTE_FROM = 0.9;

function countCharacters(text) {
  return [...text.replace(/\r\n/g, "\n").trim()].length;
}

function updateNote(area, note) {
  const most = Number(area.dataset.maxLength);
  const length = countCharacters(area.value);
  const tooMuch = length - most;
  const counted = `${length.toLocaleString("en")} of ${most.toLocaleString("en")} characters`;
  note.textContent = tooMuch > 0 ? `${counted}: ${tooMuch.toLocaleString("en")} too many.` : counted;
  note.hidden = length < most * NOTE_FROM;
  note.classList.toggle("bad", tooMuch > 0);
  area.setCustomValidity(tooMuch > 0 ? `${counted}: shorten it by ${tooMuch.toLocaleString("en")}.` : "");
}

export function watchLengths() {
  for (const area of document.querySelectorAll("textarea[data-max-length]:not([data-counted])")) {
    area.dataset.counted = "";
    const note = area.form.querySelector("[data-length]");
    area.addEventListener("input", () => updateNote(area, note));
    updateNote(area, note);
  }
}
