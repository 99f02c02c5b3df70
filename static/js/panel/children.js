// Delegated tasks inside the panel of the run that waits for them, kept up to date until they end.
import { fetchPage } from "../page/fragments.js";
import { ReconnectingSocket } from "../page/socket.js";
import { localTimes } from "../page/times.js";

const followed = new Map(); // by the run's id

async function refreshOnce(id) {
  const place = document.querySelector(`[data-child="${id}"]`);
  const current = place && (await fetchPage(place.dataset.childUrl)).querySelector("[data-child]");
  if (!current || !place.isConnected) {
    return;
  }
  const hadFocus = place.contains(document.activeElement);
  const wasOpen = Boolean(place.querySelector(".child-lines[open]"));
  place.replaceWith(document.adoptNode(current));
  current.querySelector(".child-lines")?.toggleAttribute("open", wasOpen);
  localTimes(current);
  if (hadFocus) {
    current.focus({ preventScroll: true });
  }
  if (!("childOpen" in current.dataset)) {
    followed.get(id)?.socket.end();
  }
}

// Sends one request at a time; events that arrive during it cause one more.
async function refresh(id) {
  const state = followed.get(id);
  state.isStale = state.isLoading;
  if (state.isLoading) {
    return;
  }
  state.isLoading = true;
  await refreshOnce(id).catch((error) => console.warn("A delegated task could not be refreshed:", error.message));
  state.isLoading = false;
  if (state.isStale) {
    refresh(id);
  }
}

export function followChildren(root) {
  for (const place of root.querySelectorAll("[data-child-open]")) {
    const id = place.dataset.child;
    if (followed.has(id)) {
      continue;
    }
    const state = { isLoading: false, isStale: false };
    let last = Number(place.dataset.childAfter);
    followed.set(id, state);
    state.socket = new ReconnectingSocket(() => `/ws/runs/${id}/?after=${last}`, {
      onMessage: (message) => {
        if (message.seq !== null) {
          last = Math.max(last, message.seq);
          refresh(id);
        }
      },
    });
  }
}
