// The page of the REST API: Swagger UI, with labels for screen readers where it has none.
const place = document.querySelector("#swagger-ui");
const settings = JSON.parse(document.querySelector("#swagger-settings").textContent);

const LABELS = {
  "button.close-modal": () => "Close",
  "#auth-bearer-value": () => "Token",
  "#api_key_value": () => "Value of the cookie",
  ".copy-to-clipboard button": () => "Copy",
  "textarea.body-param__text": () => "Request body",
  "select.examples-select-element": (select) => `Examples of ${parameterOf(select)}`,
  "tr[data-param-name] :is(input, select, textarea):not(.examples-select-element)": (field) => parameterOf(field),
  "table.responses-table": (table) => `Responses of ${table.closest(".opblock").querySelector("[data-path]").dataset.path}`,
  "table.live-responses-table": () => "The server's response",
  ".opblock-control-arrow": (arrow) => arrow.getAttribute("aria-label").replaceAll("\u200b", ""),
};

function parameterOf(element) {
  return element.closest("[data-param-name]")?.dataset.paramName ?? "the request body";
}

function addLabels() {
  for (const [selector, labelOf] of Object.entries(LABELS)) {
    for (const element of place.querySelectorAll(selector)) {
      element.setAttribute("aria-label", labelOf(element));
    }
  }
  for (const heading of place.querySelectorAll("h3, h4, h5")) {
    heading.setAttribute("aria-level", Number(heading.tagName[1]) - 1); // there is no h2
  }
}

// GET requests get ids of the reader's own rows as examples. Requests that change something get none, so that people
// choose the id before they press "Execute".
async function fetchNewest(list) {
  const response = await fetch(`/api/${list}?limit=1`);
  if (!response.ok) {
    throw new Error(`/api/${list} returned ${response.status}`);
  }
  return (await response.json()).items[0];
}

async function findExamples() {
  const [employee, run, approval] = await Promise.all(["employees", "runs", "approvals"].map(fetchNewest));
  return {
    employee_id: employee?.id,
    run_id: approval?.run_id ?? run?.id,
    call_id: approval?.call_id,
    approval_id: approval?.id,
  };
}

function addExamples(document, values) {
  const getOperations = Object.values(document.paths).flatMap(({ get }) => get ?? []);
  for (const parameter of getOperations.flatMap(({ parameters }) => parameters)) {
    if (parameter.in === "path" && values[parameter.name]) {
      parameter.example = values[parameter.name];
    }
  }
  return document;
}

async function showExamples() {
  try {
    ui.specActions.updateJsonSpec(addExamples(ui.specSelectors.specJson().toJS(), await findExamples()));
  } catch (error) {
    console.warn("The examples could not be loaded:", error.message);
  }
}

new MutationObserver(addLabels).observe(place, { childList: true, subtree: true });
const ui = window.SwaggerUIBundle({
  ...settings,
  domNode: place,
  onComplete: () => "loggedIn" in place.dataset && showExamples(),
  requestInterceptor(request) {
    if (request.method && request.method !== "GET") {
      request.headers["X-CSRFToken"] = place.dataset.csrfToken;
    }
    return request;
  },
});
