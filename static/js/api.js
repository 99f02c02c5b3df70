// Draws the page of the REST API with Swagger UI, and names what that leaves without a name for those who listen.
const place = document.querySelector("#swagger-ui");
const settings = JSON.parse(document.querySelector("#swagger-settings").textContent);

const NAMES = {
  "button.close-modal": () => "Close",
  "#auth-bearer-value": () => "Token",
  "#api_key_value": () => "Value of the cookie",
  ".copy-to-clipboard button": () => "Copy",
  "textarea.body-param__text": () => "Request body",
  "select.examples-select-element": (select) => `Examples of ${parameterOf(select)}`,
  "tr[data-param-name] :is(input, select, textarea):not(.examples-select-element)": (field) => parameterOf(field),
  "table.responses-table": (table) => `Responses of ${table.closest(".opblock").querySelector("[data-path]").dataset.path}`,
  "table.live-responses-table": () => "The server's answer",
  ".opblock-control-arrow": (arrow) => arrow.getAttribute("aria-label").replaceAll("\u200b", ""),
};

function parameterOf(element) {
  return element.closest("[data-param-name]")?.dataset.paramName ?? "the request body";
}

function amend() {
  for (const [selector, nameOf] of Object.entries(NAMES)) {
    for (const element of place.querySelectorAll(selector)) {
      element.setAttribute("aria-label", nameOf(element));
    }
  }
  for (const heading of place.querySelectorAll("h3, h4, h5")) {
    heading.setAttribute("aria-level", Number(heading.tagName[1]) - 1); // there is no h2
  }
}

new MutationObserver(amend).observe(place, { childList: true, subtree: true });
window.SwaggerUIBundle({
  ...settings,
  domNode: place,
  requestInterceptor(request) {
    if (request.method && request.method !== "GET") {
      request.headers["X-CSRFToken"] = place.dataset.csrfToken;
    }
    return request;
  },
});
