// Snoozing: the card leaves this reader's list for a while.
import { post } from "../page/requests.js";

const dialog = document.querySelector("[data-snooze]");
const BY_KEY = { 1: "hour", 2: "tomorrow" };

dialog?.addEventListener("keydown", (event) => {
  if (BY_KEY[event.key] && !event.target.matches("input")) {
    dialog.close(BY_KEY[event.key]);
  }
});

// Asks for how long; returns the choice, or an empty text.
function askHowLong() {
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => {
      const choice = dialog.returnValue === "day" ? dialog.querySelector("[data-snooze-day]").value : dialog.returnValue;
      dialog.returnValue = "";
      resolve(choice === "cancel" ? "" : choice);
    };
  });
}

// Asks for how long, and snoozes the card. Returns the time of its return in seconds, or the problem; null if canceled.
export async function snooze(id) {
  const until = await askHowLong();
  if (!until) {
    return null;
  }
  const { ok, data, detail } = await post(`/approvals/${id}/snooze/`, new URLSearchParams({ until }));
  return ok ? { until: data.until } : { problem: detail };
}
