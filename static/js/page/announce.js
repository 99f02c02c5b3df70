// Tells a screen reader politely what happened; never takes the focus.
export function announce(text) {
  const place = document.querySelector("[data-announcer]");
  if (place && text) {
    place.textContent = text;
  }
}
