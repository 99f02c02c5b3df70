// Shows the run's result above the panel. When a resumed run ends again, its earlier result moves back into its line.
const section = document.getElementById("end");
const place = section.querySelector("[data-end-place]");

function showPointer(line, isOnTop) {
  line.querySelector("[data-pointer]").hidden = !isOnTop;
}

export function showEnd(panel, line) {
  const end = line.querySelector("[data-end]");
  const earlier = place.querySelector("[data-end]");
  if (!end) {
    return;
  }
  const home = earlier && panel.querySelector(`.ended[data-seq="${CSS.escape(earlier.dataset.end)}"]`);
  if (home) {
    showPointer(home, false);
    home.append(earlier);
  }
  showPointer(line, true);
  place.replaceChildren(end);
  section.hidden = false;
}
