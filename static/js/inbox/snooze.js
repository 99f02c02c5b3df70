// Snoozing: the card leaves this reader's list for a while.
const dialog = document.querySelector("[data-snooze]");
const csrfToken = () => document.querySelector('meta[name="csrf-token"]').content;
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

// Returns an empty text once the card is snoozed, "cancelled", or the reason why not.
export async function snooze(id) {
  const until = await askHowLong();
  if (!until) {
    return "cancelled";
  }
  const response = await fetch(`/approvals/${id}/snooze/`, {
    method: "POST",
    credentials: "same-origin",
    headers: { Accept: "application/json", "X-CSRFToken": csrfToken() },
    body: new URLSearchParams({ until }),
  }).catch(() => null);
  return response?.ok ? "" : response ? "Choose a day within the next 60 days." : "Gadget could not be reached.";
}
