// Turns HTML from the server into nodes. Scripts in it do not run, and the page's policy forbids them anyway.
export function nodesFrom(html) {
  const body = new DOMParser().parseFromString(`<body>${html}`, "text/html").body;
  return [...document.adoptNode(body).childNodes];
}

export const elementsFrom = (html) => nodesFrom(html).filter((node) => node.nodeType === Node.ELEMENT_NODE);

export async function fetchPage(address) {
  const response = await fetch(address, { headers: { Accept: "text/html" }, credentials: "same-origin" });
  if (!response.ok || response.redirected) {
    throw new Error(`${address} answered ${response.status}`);
  }
  return new DOMParser().parseFromString(await response.text(), "text/html");
}
