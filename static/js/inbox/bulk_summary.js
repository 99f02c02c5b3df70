// The summary before a bulk decision: what the selected cards share, where they differ, and which of them is odd.
const MAX_KINDS = 4; // values of more kinds are only counted

// Returns the part of a value that is compared: the domain of an address, the host of a link, or the value itself.
function kindOf(value) {
  const domain = value.match(/^[^\s@]+@([^\s@]+\.[^\s@]+)$/)?.[1];
  const host = value.match(/^[a-z][a-z0-9+.-]*:\/\/([^/\s]+)/i)?.[1];
  return (domain ?? host ?? value).toLowerCase();
}

function readPairs(place) {
  return [...(place?.querySelectorAll(".pair") ?? [])].map((pair) => {
    const name = pair.querySelector("i").textContent;
    return [name, pair.textContent.slice(name.length).trim()];
  });
}

// The values of a row by name: its own, and those that its group shows once above it.
function valuesOf(row) {
  const head = row.classList.contains("grouped") && document.querySelector(`[data-group="${CSS.escape(row.dataset.shape)}"]`);
  return new Map([...readPairs(head || null), ...readPairs(row)]);
}

function count(values) {
  const counts = new Map();
  values.forEach((value) => counts.set(value, (counts.get(value) ?? 0) + 1));
  return [...counts].sort((one, other) => other[1] - one[1]);
}

function describeDifferences(name, values, total) {
  const kinds = count(values.map(kindOf));
  const different = `${name}: ${new Set(values).size} different values`;
  if (kinds.length > 1 && (kinds.length === values.length || kinds.length > MAX_KINDS)) {
    return different;
  }
  if (kinds.length === 1 && values.length === total) {
    return `${different}, all ${kinds[0][0]}`;
  }
  const [[most, many], ...rest] = kinds;
  const others = rest.map(([kind, few]) => `${few} ${kind}`);
  return `${name}: ${many} of ${total} ${most}${others.length ? `; ${others.join("; ")}` : ""}`;
}

// Returns lines such as `The same for all 8: region US` and `email: 7 of 8 acme.com; 1 gmail.com`.
export function summarizeValues(rows) {
  const all = rows.map(valuesOf);
  const names = [...new Set(all.flatMap((values) => [...values.keys()]))];
  const shared = [];
  const differing = [];
  for (const name of names) {
    const values = all.filter((one) => one.has(name)).map((one) => one.get(name));
    const isShared = values.length === rows.length && new Set(values).size === 1;
    isShared ? shared.push(`${name} ${values[0]}`) : differing.push(describeDifferences(name, values, rows.length));
  }
  return [...(shared.length ? [`The same for all ${rows.length}: ${shared.join(", ")}`] : []), ...differing];
}
