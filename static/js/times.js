// Times in the reader's own zone, and countdowns of the grace.
const FORMAT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([data-local])")) {
    time.textContent = FORMAT.format(new Date(time.dateTime));
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
