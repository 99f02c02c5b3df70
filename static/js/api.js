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

// What is read here shall find something: the examples of ids are those of whoever looks, as the lists have them. What
// would change or decide something has none: whoever presses "Execute" there has named what it is done to.
async function newest(list) {
  const answer = await fetch(`/api/${list}?limit=1`);
  if (!answer.ok) {
    throw new Error(`/api/${list} answered ${answer.status}`);
  }
  return (await answer.json()).items[0];
}

async function examples() {
  const [employee, run, approval] = await Promise.all(["employees", "runs", "approvals"].map(newest));
  return {
    employee_id: employee?.id,
    run_id: approval?.run_id ?? run?.id,
    call_id: approval?.call_id,
    approval_id: approval?.id,
  };
}

function filledIn(document, values) {
  const reading = Object.values(document.paths).flatMap(({ get }) => get ?? []);
  for (const parameter of reading.flatMap(({ parameters }) => parameters)) {
    if (parameter.in === "path" && values[parameter.name]) {
      parameter.example = values[parameter.name];
    }
  }
  return document;
}

async function fillIn() {
  try {
    ui.specActions.updateJsonSpec(filledIn(ui.specSelectors.specJson().toJS(), await examples()));
  } catch (error) {
    console.warn("The examples have no ids:", error.message);
  }
}

new MutationObserver(amend).observe(place, { childList: true, subtree: true });
const ui = window.SwaggerUIBundle({
  ...settings,
  domNode: place,
  onComplete: () => "loggedIn" in place.dataset && fillIn(),
  requestInterceptor(request) {
    if (request.method && request.method !== "GET") {
      request.headers["X-CSRFToken"] = place.dataset.csrfToken;
    }
    return request;
  },
});
