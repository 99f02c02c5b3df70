// Relative times of cards, such as `5 minutes ago`, kept up to date.
import { localTime } from "./times.js";

const UPDATE_MS = 30_000;
const RELATIVE_TIME = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const UNITS = [
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
];

function describeAge(time) {
  const seconds = (new Date(time.dateTime) - Date.now()) / 1000;
  const unit = UNITS.find(([, length]) => Math.abs(seconds) >= length);
  return unit ? RELATIVE_TIME.format(Math.round(seconds / unit[1]), unit[0]) : seconds < 0 ? "just now" : "in less than a minute";
}

export function updateAges() {
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const words = describeAge(time);
    if (time.textContent !== words) {
      time.textContent = words;
    }
    if (!("titled" in time.dataset)) {
      time.title = localTime(time.dateTime);
      time.dataset.titled = "";
    }
  }
}

setInterval(updateAges, UPDATE_MS);
