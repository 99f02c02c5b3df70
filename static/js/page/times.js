// Times in the reader's zone, in the server's form, and countdowns.
const FORMAT = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });

export const localTime = (text) => FORMAT.format(new Date(text));

export function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([data-local])")) {
    time.textContent = localTime(time.dateTime);
    time.dataset.local = "";
  }
}

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
