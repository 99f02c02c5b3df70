// The start page: example tasks fill the form, a task is handed over once, and the lists stay fresh.
import { announce } from "./page/announce.js";
import "./page/fresh.js";

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
  announce("The task is filled in.");
}

let isHandedOver = false;

function handOverOnce(event) {
  if (isHandedOver) {
    event.preventDefault();
  }
  isHandedOver = true;
}

if (form) {
  form.addEventListener("click", fillIn);
  form.addEventListener("submit", handOverOnce);
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  window.addEventListener("pageshow", () => {
    isHandedOver = false;
  });
}

let waiting = null;

document.addEventListener("inbox-changed", ({ detail: { pending } }) => {
  if (waiting !== null && pending > waiting) {
    announce(pending === 1 ? "A card waits for a decision." : `${pending} cards wait for a decision.`);
  }
  waiting = pending;
});
