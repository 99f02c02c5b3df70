// The parts of a run's page outside its lines. The server draws each of them and names its place:
// `<template data-into="run-status">` goes into the element with the id `run-status`.
import { localTimes, showTimesLeft, showTimesSince } from "../page/times.js";

const run = document.querySelector("[data-run]");
const conditional = [...run.querySelectorAll("[data-when]")];

export const hasEnded = () => "ended" in run.dataset;

export function showParts(parts) {
  for (const part of parts) {
    const place = document.getElementById(part.dataset.into) ?? addToList(part.dataset);
    if (!place) {
      continue; // the line of this pass is on an earlier page
    }
    place.replaceChildren(part.content);
    localTimes(place);
    showTimesLeft();
    showTimesSince();
    if (part.dataset.status) {
      followStatus(part.dataset);
    }
  }
}

// A part that is new in a list, such as a pass on the timeline.
function addToList({ into, inList }) {
  const list = inList && document.getElementById(inList);
  if (!list) {
    return null;
  }
  const place = Object.assign(document.createElement("li"), { id: into });
  list.append(place);
  return place;
}

// Shows what belongs to the status, as `shown_when` does in templates/runs/run.html.
function followStatus({ status, reason, ended }) {
  run.dataset.runStatus = status;
  run.toggleAttribute("data-ended", ended !== undefined);
  for (const part of conditional) {
    const statuses = part.dataset.when.split(" ");
    part.hidden = !statuses.includes(status) && !statuses.includes(`${status}:${reason}`);
  }
}
