// The start page: the cursor is in the task, examples fill it, a task is submitted once, and the lists refresh.
import { announce } from "./page/announce.js";
import "./page/live_sections.js";

const form = document.querySelector("[data-task-form]");

function fillIn(event) {
  const example = event.target.closest("[data-example]");
  if (!example || event.ctrlKey || event.metaKey || event.shiftKey) {
    return;
  }
  event.preventDefault();
  const task = form.querySelector("[data-task]");
  task.value = example.dataset.example;
  task.dispatchEvent(new Event("input"));
  form.querySelector("[type=submit]").focus(); // one more key or click starts it, and no on-screen keyboard opens
  announce("The example task is filled in. Press Enter to start.");
}

// Without scrolling: on a phone, the guide and the examples above the field stay in view.
function focusTask() {
  if (document.activeElement === document.body && !location.hash) {
    form.querySelector("[data-task]").focus({ preventScroll: true });
  }
}

let isSubmitted = false;

function submitOnce(event) {
  if (isSubmitted) {
    event.preventDefault();
  }
  isSubmitted = true;
}

if (form) {
  focusTask();
  form.addEventListener("click", fillIn);
  form.addEventListener("submit", submitOnce);
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  window.addEventListener("pageshow", () => {
    isSubmitted = false;
  });
}

let waiting = null;

document.addEventListener("inbox-changed", ({ detail: { pending } }) => {
  if (waiting !== null && pending > waiting) {
    announce(pending === 1 ? "1 approval needed." : `${pending} approvals needed.`);
  }
  waiting = pending;
});
