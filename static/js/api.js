// Draws the page of the REST API with Swagger UI, and names what that leaves without a name for those who listen.
const place = document.querySelector("#swagger-ui");
const settings = JSON.parse(document.querySelector("#swagger-settings").textContent);

const MOST_RUNS = 5;

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

// What is tried out here shall find something: the examples of ids are those of whoever looks, as the lists have them.
async function json(path) {
  const answer = await fetch(path);
  if (!answer.ok) {
    throw new Error(`${path} answered ${answer.status}`);
  }
  return answer.json();
}

async function examples() {
  const lists = ["employees", "runs", "approvals?status=pending", "approvals"].map((list) => json(`/api/${list}`));
  const [employees, runs, waiting, approvals] = (await Promise.all(lists)).map(({ items }) => items);
  const employee = employees.find((one) => one.is_active && one.example_tasks.length) ?? employees[0];
  const found = await Promise.all(runs.slice(0, MOST_RUNS).map(({ id }) => json(`/api/runs/${id}`)));
  const run = found.find((one) => one.tool_calls.length) ?? found[0];
  return {
    employee_id: employee?.id,
    task: employee?.example_tasks[0],
    run_id: run?.id,
    call_id: run?.tool_calls[0]?.id,
    approval_id: (waiting[0] ?? approvals[0])?.id,
  };
}

function fillIn(document, values) {
  for (const operation of Object.values(document.paths).flatMap((path) => Object.values(path))) {
    for (const parameter of operation.parameters.filter((one) => one.in === "path")) {
      parameter.example = values[parameter.name];
    }
  }
  for (const shape of ["NewRun", "BulkDecision"]) {
    for (const [name, schema] of Object.entries(document.components.schemas[shape].properties)) {
      if (values[name] !== undefined) {
        schema.examples = [values[name]];
      }
    }
  }
  return document;
}

async function described() {
  const document = await json(settings.url);
  if (!("loggedIn" in place.dataset)) {
    return document;
  }
  try {
    return fillIn(document, await examples());
  } catch (error) {
    console.warn("The examples have no ids:", error.message);
    return document;
  }
}

new MutationObserver(amend).observe(place, { childList: true, subtree: true });
window.SwaggerUIBundle({
  ...settings,
  url: undefined,
  spec: await described(),
  domNode: place,
  requestInterceptor(request) {
    if (request.method && request.method !== "GET") {
      request.headers["X-CSRFToken"] = place.dataset.csrfToken;
    }
    return request;
  },
});
