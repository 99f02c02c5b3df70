// The start page: example tasks fill the form, and the lists stay fresh.
import { pageFrom } from "./fragments.js";
import { localTimes } from "./times.js";

const FRESH_MS = 4000;
const employee = document.querySelector("[data-employee]");
const task = document.querySelector("[data-task]");

function showExamples() {
  for (const examples of document.querySelectorAll("[data-examples]")) {
    examples.hidden = examples.dataset.examples !== employee.value;
  }
}

if (employee) {
  employee.addEventListener("change", showExamples);
  showExamples();
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-example]");
    if (button) {
      task.value = button.dataset.example;
    }
  });
}

let isFetching = false;

async function refresh() {
  if (isFetching || document.hidden) {
    return;
  }
  isFetching = true;
  try {
    const fresh = await pageFrom(location.pathname);
    for (const section of document.querySelectorAll("[data-live]")) {
      const newer = fresh.getElementById(section.id);
      if (newer) {
        localTimes(newer);
      }
      if (newer && newer.textContent !== section.textContent && !section.contains(document.activeElement)) {
        section.replaceWith(document.adoptNode(newer));
      }
    }
  } catch (error) {
    console.warn("The lists are not fresh:", error.message);
  } finally {
    isFetching = false;
  }
}

document.addEventListener("inbox-changed", refresh);
setInterval(() => document.querySelector("[data-moving]") && refresh(), FRESH_MS);
