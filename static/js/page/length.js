// How long a text may be: anything can be typed and pasted, and what is too much is said before it is sent.
const NEARLY = 0.9;

function lengthOf(text) {
  return [...text.replace(/\r\n/g, "\n").trim()].length;
}

function tell(area, note) {
  const most = Number(area.dataset.most);
  const length = lengthOf(area.value);
  const tooMuch = length - most;
  const counted = `${length.toLocaleString("en")} of ${most.toLocaleString("en")} characters`;
  note.textContent = tooMuch > 0 ? `${counted}: ${tooMuch.toLocaleString("en")} too many.` : counted;
  note.hidden = length < most * NEARLY;
  note.classList.toggle("bad", tooMuch > 0);
  area.setCustomValidity(tooMuch > 0 ? `${counted}: shorten it by ${tooMuch.toLocaleString("en")}.` : "");
}

export function keepLengths() {
  for (const area of document.querySelectorAll("textarea[data-most]:not([data-counted])")) {
    area.dataset.counted = "";
    const note = area.form.querySelector("[data-length]");
    area.addEventListener("input", () => tell(area, note));
    tell(area, note);
  }
}
