// The player of a replay: shows the entries up to a moment, and moves on at a chosen speed. It stands alone, because the
// exported file contains it.
const SKIPPED_TO_MS = 1500;
const TICK_MS = 100;

const replay = document.querySelector("[data-replay]");
const controls = replay.querySelector("[data-controls]");
const find = (name) => controls.querySelector(`[data-${name}]`);
const [play, scrubber, clock, speed, skip, here] = ["play", "scrubber", "clock", "speed", "skip", "here"].map(find);
const entries = [...replay.querySelectorAll("[data-at]")];

let places = []; // of each entry on the scrubber, in milliseconds
let timer;

// Time in which nobody works is shortened, if the reader wants that.
function measure() {
  let place = 0;
  places = entries.map((entry, index) => {
    const before = entries[index - 1];
    const gap = before ? Number(entry.dataset.at) - Number(before.dataset.at) : 0;
    place += skip.checked && before && "waits" in before.dataset ? Math.min(gap, SKIPPED_TO_MS) : gap;
    return place;
  });
  scrubber.max = String(Math.ceil((places.at(-1) ?? 0) / TICK_MS) * TICK_MS);
}

function countShown(at) {
  let count = 0;
  while (count < places.length && places[count] <= at) {
    count += 1;
  }
  return count;
}

function formatClock(milliseconds) {
  const seconds = Math.floor(milliseconds / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

// An entry takes the place of the earlier one of its slot.
function show(at, { follows = true } = {}) {
  scrubber.value = String(at);
  const count = Math.max(1, countShown(at));
  const newest = new Map(entries.slice(0, count).map((entry) => [entry.dataset.slot || entry.id, entry]));
  for (const [index, entry] of entries.entries()) {
    entry.hidden = index >= count || newest.get(entry.dataset.slot || entry.id) !== entry;
  }
  const current = entries[count - 1];
  entries.forEach((entry) => entry.toggleAttribute("data-current", entry === current));
  clock.textContent = `${formatClock(at)} of ${formatClock(scrubber.max)}`;
  scrubber.setAttribute("aria-valuetext", clock.textContent);
  here.href = `#t=${at}`;
  if (follows) {
    current?.scrollIntoView({ block: "nearest" });
  }
}

function setPlaying(isPlaying) {
  clearInterval(timer);
  play.textContent = isPlaying ? "Pause" : "Play";
  play.setAttribute("aria-pressed", String(isPlaying));
  if (!isPlaying) {
    return;
  }
  if (Number(scrubber.value) >= Number(scrubber.max)) {
    show(0);
  }
  let last = performance.now();
  timer = setInterval(() => {
    const now = performance.now();
    const at = Math.min(Number(scrubber.value) + (now - last) * Number(speed.value), Number(scrubber.max));
    last = now;
    show(Math.round(at));
    if (at >= Number(scrubber.max)) {
      setPlaying(false);
    }
  }, TICK_MS);
}

function step(by) {
  setPlaying(false);
  const index = Math.min(Math.max(countShown(Number(scrubber.value)) - 1 + by, 0), places.length - 1);
  show(places[index] ?? 0);
}

// `#t=12000` is a moment on the scrubber; `#pass-2` is where that pass starts.
function goToHash() {
  const [, name, number] = location.hash.match(/^#(t=|pass-)(\d+)$/) ?? [];
  const index = name === "pass-" ? entries.findIndex((entry) => entry.dataset.pass === number) : -1;
  if (name) {
    setPlaying(false);
    show(index >= 0 ? places[index] : Math.min(Number(number), Number(scrubber.max)));
  }
  return Boolean(name);
}

play.addEventListener("click", () => setPlaying(play.getAttribute("aria-pressed") !== "true"));
scrubber.addEventListener("input", () => {
  setPlaying(false);
  show(Number(scrubber.value));
});
skip.addEventListener("change", () => {
  const index = countShown(Number(scrubber.value)) - 1;
  measure();
  show(places[index] ?? 0);
});
for (const button of controls.querySelectorAll("[data-step]")) {
  button.addEventListener("click", () => step(Number(button.dataset.step)));
}
addEventListener("hashchange", goToHash);

measure();
controls.hidden = false;
if (!goToHash()) {
  show(0, { follows: false });
}
