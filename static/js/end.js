// What the run came to stands above the panel; when the run was continued and ends again, the earlier end goes back to
// its own line, with its own figures.
const section = document.getElementById("end");
const place = section.querySelector("[data-end-place]");

function point(line, isOnTop) {
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
    point(home, false);
    home.append(earlier);
  }
  point(line, true);
  place.replaceChildren(end);
  section.hidden = false;
}
