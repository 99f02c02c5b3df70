// Reads an element as one line for an announcement or a toast. Texts of others are quoted there: the page sets them off by
// their look, which a plain line does not have.
export function readSpoken(element) {
  const copy = element.cloneNode(true);
  copy.querySelectorAll("[hidden], details:not([open]) > :not(summary)").forEach((part) => part.remove());
  for (const part of copy.querySelectorAll(".chip, q")) {
    part.replaceWith(`“${part.textContent.trim()}”`);
  }
  for (const pair of copy.querySelectorAll(".pair")) {
    const name = pair.querySelector("i").textContent;
    pair.replaceWith(`${name} “${pair.textContent.slice(name.length).trim()}” `);
  }
  return copy.textContent.replace(/\s+/g, " ").trim();
}
