// Tasks that were handed over, inside the panel of the run that waits for them: each as it is now, as long as it goes on.
import { pageFrom } from "./fragments.js";
import { LastingSocket } from "./socket.js";
import { localTimes } from "./times.js";

const followed = new Map(); // by the run's id

const placeOf = (id) => document.querySelector(`[data-child="${id}"]`);

async function showNow(id) {
  const place = placeOf(id);
  const now = place && (await pageFrom(place.dataset.childNow)).querySelector("[data-child]");
  if (!now || !place.isConnected) {
    return;
  }
  const hadFocus = place.contains(document.activeElement);
  const wasOpen = Boolean(place.querySelector(".child-lines[open]"));
  place.replaceWith(document.adoptNode(now));
  now.querySelector(".child-lines")?.toggleAttribute("open", wasOpen);
  localTimes(now);
  if (hadFocus) {
    now.focus({ preventScroll: true });
  }
  if (!("childOpen" in now.dataset)) {
    followed.get(id)?.socket.end();
  }
}

// One look at a time; what rings meanwhile is looked at afterwards.
async function look(id) {
  const state = followed.get(id);
  state.isStale = state.isShowing;
  if (state.isShowing) {
    return;
  }
  state.isShowing = true;
  await showNow(id).catch((error) => console.warn("A task that was handed over is not fresh:", error.message));
  state.isShowing = false;
  if (state.isStale) {
    look(id);
  }
}

export function followChildren(root) {
  for (const place of root.querySelectorAll("[data-child-open]")) {
    const id = place.dataset.child;
    if (followed.has(id)) {
      continue;
    }
    const state = { isShowing: false, isStale: false };
    let last = Number(place.dataset.childAfter);
    followed.set(id, state);
    state.socket = new LastingSocket(() => `/ws/runs/${id}/?after=${last}`, {
      onMessage: (message) => {
        if (message.seq !== null) {
          last = Math.max(last, message.seq);
          look(id);
        }
      },
    });
  }
}
