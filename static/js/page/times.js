// Times in the reader's zone: relative ones up to a day, kept up to date, with the exact time on hover; and countdowns.
const DATE = { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" };
const FORMAT = new Intl.DateTimeFormat("en-GB", DATE);
const EXACT_FORMAT = new Intl.DateTimeFormat("en-GB", { ...DATE, second: "2-digit", timeZoneName: "short" });
const UPDATE_MS = 20_000;
const MINUTE_S = 60;
const HOUR_S = 3600;
const DAY_S = 86_400;

export const localTime = (text) => FORMAT.format(new Date(text));

// The words of `format_age` in agents/web/text/durations.py.
function describeAge(text) {
  const seconds = Math.round((Date.now() - new Date(text)) / 1000);
  const distance = Math.abs(seconds);
  if (distance >= DAY_S) {
    return localTime(text);
  }
  if (distance < MINUTE_S) {
    return seconds >= 0 ? "just now" : "in less than a minute";
  }
  const words = distance >= HOUR_S ? `${Math.floor(distance / HOUR_S)} h` : `${Math.floor(distance / MINUTE_S)} min`;
  return seconds > 0 ? `${words} ago` : `in ${words}`;
}

export function updateAges(root = document) {
  for (const time of root.querySelectorAll("time[data-ago]")) {
    const words = describeAge(time.dateTime);
    if (time.textContent !== words) {
      time.textContent = words;
    }
  }
}

// Shows the times that have come from the server since the last call.
export function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([data-shown])")) {
    time.dataset.shown = "";
    if (!("local" in time.dataset)) {
      time.textContent = localTime(time.dateTime);
    }
    time.title = EXACT_FORMAT.format(new Date(time.dateTime));
  }
  updateAges(root);
}

setInterval(updateAges, UPDATE_MS);

export function countDown(root) {
  for (const place of root.querySelectorAll("[data-countdown]:not([data-counting])")) {
    place.dataset.counting = "";
    const end = performance.now() + Number(place.dataset.countdown) * 1000;
    const tick = () => {
      const left = Math.ceil((end - performance.now()) / 1000);
      place.textContent = String(Math.max(0, left));
      if (left > 0 && place.isConnected) {
        setTimeout(tick, 250);
      } else {
        place.closest("form").hidden = true;
      }
    };
    tick();
  }
}

// Counts down to each `time[data-until]`, in the words that the server's `countdown` filter uses.
export function showTimesLeft() {
  for (const time of document.querySelectorAll("time[data-until]")) {
    const left = Math.ceil((new Date(time.dateTime) - Date.now()) / 1000);
    time.textContent = left > 0 ? `in ${left} s` : "now";
  }
}

// The time since a moment, in the words of `format_whole_duration` in agents/web/text/durations.py.
function describeElapsed(seconds) {
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (minutes < 1) {
    return `${seconds} s`;
  }
  if (hours < 1) {
    return `${minutes} min`;
  }
  return hours < 24 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

// Counts up from each `time[data-since]`.
export function showTimesSince() {
  for (const time of document.querySelectorAll("time[data-since]")) {
    time.textContent = describeElapsed(Math.max(0, Math.round((Date.now() - new Date(time.dateTime)) / 1000)));
  }
}

setInterval(() => {
  showTimesLeft();
  showTimesSince();
}, 1000);
