import { tellLoggedOut } from "./requests.js";

// Turns HTML from the server into nodes. Scripts in it do not run, and the page's policy forbids them anyway.
export function nodesFrom(html) {
  const body = new DOMParser().parseFromString(`<body>${html}`, "text/html").body;
  return [...document.adoptNode(body).childNodes];
}

export const elementsFrom = (html) => nodesFrom(html).filter((node) => node.nodeType === Node.ELEMENT_NODE);

export async function fetchText(address) {
  const response = await fetch(address, { headers: { Accept: "text/html" }, credentials: "same-origin" });
  if (response.redirected && new URL(response.url).pathname === "/login/") {
    tellLoggedOut();
  }
  if (!response.ok || response.redirected) {
    throw new Error(`${address} returned ${response.status}`);
  }
  return response.text();
}

export async function fetchPage(address) {
  return new DOMParser().parseFromString(await fetchText(address), "text/html");
}
