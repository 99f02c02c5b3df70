// Server-made HTML becomes elements. Scripts in it would stay dead, and the page's policy forbids them anyway.
export function elementFrom(html) {
  const body = new DOMParser().parseFromString(`<ol>${html}</ol>`, "text/html").body;
  return document.adoptNode(body.firstElementChild).firstElementChild;
}

export async function pageFrom(address) {
  const response = await fetch(address, { headers: { Accept: "text/html" }, credentials: "same-origin" });
  if (!response.ok || response.redirected) {
    throw new Error(`${address} answered ${response.status}`);
  }
  return new DOMParser().parseFromString(await response.text(), "text/html");
}
