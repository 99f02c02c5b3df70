// The player of a playback: shows the entries up to a moment, and moves on at a chosen speed. It imports nothing,
// because the exported file contains it.
const SKIPPED_TO_MS = 1500;
const TICK_MS = 100;

const playback = document.querySelector("[data-playback]");
const controls = playback.querySelector("[data-controls]");
const find = (name) => controls.querySelector(`[data-${name}]`);
const [play, scrubber, clock, speed, skip, here] = ["play", "scrubber", "clock", "speed", "skip", "here"].map(find);
const entries = [...playback.querySelectorAll("[data-at]")];

let places = []; // of each entry on the scrubber, in milliseconds
let at = 0; // the exact place, which the scrubber rounds
let current = 0; // the index of the newest entry that is shown
let timer;

// Time in which nobody works, or whose events are left out, is shortened, if the reader wants that.
function measure() {
  let place = 0;
  places = entries.map((entry, index) => {
    const before = entries[index - 1];
    const gap = before ? Number(entry.dataset.at) - Number(before.dataset.at) : 0;
    const isIdle = before && ("waits" in before.dataset || "gap" in entry.dataset);
    place += skip.checked && isIdle ? Math.min(gap, SKIPPED_TO_MS) : gap;
    return place;
  });
  scrubber.max = String(Math.ceil(places.at(-1) / TICK_MS) * TICK_MS);
}

// `0:03` or `1:02:03`, like the times of the entries.
function formatClock(milliseconds) {
  const seconds = Math.floor(milliseconds / 1000);
  const pad = (number) => String(number).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return `${hours ? `${hours}:${pad(minutes)}` : minutes}:${pad(seconds % 60)}`;
}

// An entry takes the place of the earlier one of its slot.
function show(place, index) {
  [at, current] = [place, index];
  scrubber.value = String(place);
  const newest = new Map(entries.slice(0, index + 1).map((entry) => [entry.dataset.slot || entry.id, entry]));
  entries.forEach((entry, number) => {
    entry.hidden = number > index || newest.get(entry.dataset.slot || entry.id) !== entry;
    entry.toggleAttribute("data-current", number === index);
  });
  clock.textContent = `${formatClock(place)} of ${formatClock(scrubber.max)}`;
  scrubber.setAttribute("aria-valuetext", clock.textContent);
  here.href = `#${entries[index].id}`;
}

function goToPlace(place) {
  show(place, places.findLastIndex((each) => each <= place));
  entries[current].scrollIntoView({ block: "nearest" });
}

// Events of one moment share a place, so the entry is named too.
function goToEntry(index) {
  setPlaying(false);
  show(places[index], index);
  entries[index].scrollIntoView({ block: "nearest" });
}

function setPlaying(isPlaying) {
  clearInterval(timer);
  play.textContent = isPlaying ? "Pause" : "Play";
  play.setAttribute("aria-pressed", String(isPlaying));
  if (!isPlaying) {
    return;
  }
  if (at >= places.at(-1)) {
    goToPlace(0);
  }
  let last = performance.now();
  timer = setInterval(() => {
    const now = performance.now();
    goToPlace(Math.min(at + (now - last) * Number(speed.value), Number(scrubber.max)));
    last = now;
    if (at >= Number(scrubber.max)) {
      setPlaying(false);
    }
  }, TICK_MS);
}

// `#event-12` is an event, and `#pass-2` the event that starts this pass. Places depend on what is skipped.
function goToHash() {
  const index = entries.findIndex(({ id, dataset }) => [`#${id}`, `#pass-${dataset.pass}`].includes(location.hash));
  if (index >= 0) {
    goToEntry(index);
  }
}

play.addEventListener("click", () => setPlaying(play.getAttribute("aria-pressed") !== "true"));
scrubber.addEventListener("input", () => {
  setPlaying(false);
  goToPlace(Number(scrubber.value));
});
skip.addEventListener("change", () => {
  measure();
  goToEntry(current);
});
for (const button of controls.querySelectorAll("[data-step]")) {
  button.addEventListener("click", () => {
    goToEntry(Math.min(Math.max(current + Number(button.dataset.step), 0), entries.length - 1));
  });
}
addEventListener("hashchange", goToHash);

measure();
controls.hidden = false;
show(0, 0);
goToHash();
