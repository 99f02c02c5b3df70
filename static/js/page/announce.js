// Announces a text to screen readers, politely. With `joins`, it is read after a text that was announced at the same
// moment.
const TOGETHER_MS = 150;
let announcedAt = -TOGETHER_MS;

export function announce(text, { joins = false } = {}) {
  const place = document.querySelector("[data-announcer]");
  if (!place || !text) {
    return;
  }
  const now = performance.now();
  const before = joins && now - announcedAt < TOGETHER_MS ? place.textContent : "";
  announcedAt = now;
  place.textContent = [before, text].filter(Boolean).join(" ");
}
