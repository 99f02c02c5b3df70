// Announces a text to screen readers, politely.
export function announce(text) {
  const place = document.querySelector("[data-announcer]");
  if (place && text) {
    place.textContent = text;
  }
}
