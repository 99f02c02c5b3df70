// The strip of a pass for live lines: its calls as bars side by side in time, as the server draws it for the page.
const MOST_BARS = 12;
const WIDTH = 1000;
const LANE = 6;
const THINNEST = 8;
const SVG = "http://www.w3.org/2000/svg";

const spansOf = new WeakMap(); // a pass' line -> Map of its calls' ids to spans

function spanOf(line) {
  const began = Number(line.dataset.began);
  const isRunning = line.dataset.status === "executing" || line.dataset.status === "ready";
  return { began, ended: began + Number(line.dataset.took || 0), isRunning, level: line.dataset.level };
}

// The calls that stood there before this page was live are looked up once, when the first live one joins them.
function known(pass) {
  if (!spansOf.has(pass)) {
    const spans = new Map();
    for (let line = pass.nextElementSibling; line && !line.classList.contains("pass"); line = line.nextElementSibling) {
      if (line.dataset.began) {
        spans.set(line.id, spanOf(line));
      }
    }
    spansOf.set(pass, spans);
  }
  return spansOf.get(pass);
}

function element(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) {
    made.setAttribute(attribute, value);
  }
  return made;
}

function draw(strip, spans, count) {
  const begin = Math.min(...spans.map((span) => span.began));
  const whole = Math.max(1, Math.max(...spans.map((span) => span.ended)) - begin);
  const svg = element("svg", {
    viewBox: `0 0 ${WIDTH} ${LANE * spans.length}`,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": `${count} calls side by side, ${Math.round(whole)} ms in all`,
  });
  spans.forEach((span, lane) => {
    const x = Math.min(Math.round((WIDTH * (span.began - begin)) / whole), WIDTH - THINNEST);
    const right = span.isRunning ? WIDTH : Math.round((WIDTH * (span.ended - begin)) / whole);
    const look = `bar ${span.level}${span.isRunning ? " running" : ""}`;
    svg.append(element("rect", { x, y: lane * LANE, width: Math.max(right - x, THINNEST), height: 4, class: look }));
  });
  strip.replaceChildren(svg);
}

// Adds the call's bar to the strip of its pass, or moves it on; looks at no more than a strip holds.
export function showBar(pass, line) {
  const strip = pass?.querySelector("[data-strip]");
  if (!strip || !line.dataset.began) {
    return;
  }
  const spans = known(pass);
  const isShown = spans.has(line.id) || spans.size < MOST_BARS;
  spans.set(line.id, spanOf(line));
  if (isShown && spans.size > 1) {
    draw(strip, first(spans, MOST_BARS), spans.size);
  }
}

function first(spans, most) {
  const found = [];
  for (const span of spans.values()) {
    if (found.push(span) === most) {
      break;
    }
  }
  return found;
}
