// Requests that change something. The page of a person whose session has ended says so, and offers the login.
const COOKIE = /(?:^|; )csrftoken=([^;]+)/;

// Reads the cookie each time: a login in another tab changes it, and the server accepts only the newest token.
export const csrfToken = () => document.cookie.match(COOKIE)?.[1] ?? document.querySelector('meta[name="csrf-token"]').content;

let wasLoggedOut = false;

export function tellLoggedOut() {
  wasLoggedOut = true;
  document.dispatchEvent(new CustomEvent("logged-out"));
}

// A request was accepted after a login in another tab.
function tellLoggedIn() {
  if (wasLoggedOut) {
    wasLoggedOut = false;
    document.dispatchEvent(new CustomEvent("logged-in"));
  }
}

// Sends a body as JSON, or as a form. Returns the status, 0 without a response, and in `detail` what went wrong.
export async function post(address, body = {}) {
  const isForm = body instanceof URLSearchParams;
  const headers = { Accept: "application/json", "X-CSRFToken": csrfToken(), ...(isForm ? {} : { "Content-Type": "application/json" }) };
  let response;
  try {
    response = await fetch(address, { method: "POST", credentials: "same-origin", headers, body: isForm ? body : JSON.stringify(body) });
  } catch {
    return { ok: false, status: 0, data: {}, detail: "Gadget could not be reached" };
  }
  const data = (await response.json().catch(() => null)) ?? {};
  if (response.status === 401) {
    tellLoggedOut();
    return { ok: false, status: 401, data: {}, detail: "you are logged out. Log in, and press again" };
  }
  if (response.ok) {
    tellLoggedIn();
  }
  return { ok: response.ok, status: response.status, data, detail: data.detail ?? `the server responded with ${response.status}` };
}

// A form that was loaded before the last login is sent with the current token.
document.addEventListener("submit", ({ target }) => {
  const field = target.elements?.namedItem("csrfmiddlewaretoken");
  if (field instanceof HTMLInputElement) {
    field.value = csrfToken();
  }
});
