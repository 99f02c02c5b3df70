// How long ago a card was asked and when it expires, kept true while the page stays open.
import { localTime } from "./times.js";

const FRESH_MS = 30_000;
const WORDS = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const UNITS = [
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
];

function inWords(time) {
  const seconds = (new Date(time.dateTime) - Date.now()) / 1000;
  const unit = UNITS.find(([, length]) => Math.abs(seconds) >= length);
  return unit ? WORDS.format(Math.round(seconds / unit[1]), unit[0]) : seconds < 0 ? "just now" : "in less than a minute";
}

export function keepAges() {
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const words = inWords(time);
    if (time.textContent !== words) {
      time.textContent = words;
    }
    if (!("titled" in time.dataset)) {
      time.title = localTime(time.dateTime);
      time.dataset.titled = "";
    }
  }
}

setInterval(keepAges, FRESH_MS);
