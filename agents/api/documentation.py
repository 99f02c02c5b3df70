"""What the OpenAPI description says beside the shapes: problems, tags, and how to log in."""

from http import HTTPStatus
from typing import Any

from ninja import NinjaAPI
from ninja.openapi.docs import Swagger
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from agents.api.schemas import Problem

from .problems import CONTENT_TYPE

DESCRIPTION = """
AI employees do real work with real tools; a person approves whatever changes something.

**Log in** with a browser's session (changes also need the header `X-CSRFToken`), or send
`Authorization: Bearer TOKEN` with a token made by `python manage.py create_api_token USERNAME`.

**Ids** are strings, times are ISO 8601 in UTC, durations are milliseconds and end in `_ms`.
**Errors** are `application/problem+json`; branch on `code`.
**Lists** are `{"items": [...], "next_cursor": ...}`: send the cursor back to get the next page; null ends the list.
""".strip()

TAGS = [
    {"name": "Runs", "description": "Tasks at work, from the task to the answer."},
    {"name": "Approvals", "description": "What waits for a person's decision."},
    {"name": "Tool calls", "description": "What employees asked their tools for, and what came of it."},
    {"name": "Employees", "description": "Who works here."},
    {"name": "Tools", "description": "What can be done."},
    {"name": "Health", "description": "For load balancers and monitoring; no login."},
]

WORDS = {
    401: "No login, or a wrong token.",
    403: "Your role does not include it.",
    404: "Not there, or another organisation's.",
    409: "Not in this state any more: decided (by whom, when), or ended.",
    410: "The card has expired.",
    412: "The digest is not that of the card as it is now.",
    422: "A field is wrong: which one, and why.",
    429: "Too many wrong tokens; see Retry-After.",
    503: "The database is away.",
}

# Links within buttons and colours that know no dark stay away; static/css/api.css and static/js/api.js do the rest.
PAGE = Swagger(settings={"deepLinking": False, "syntaxHighlight": False, "defaultModelsExpandDepth": 0})

# An id in an address has no example, which would lead nowhere; js/api.js puts in one of whoever is logged in.
FOUND_AT = {
    "employee_id": "The `id` of an employee: `GET /api/employees` lists them.",
    "run_id": "The `id` of a run: `GET /api/runs` lists them, and `POST /api/runs` starts one.",
    "call_id": "The `id` of a tool call: `GET /api/runs/{run_id}` has those of a run under `tool_calls`.",
    "approval_id": "The `id` of a card: `GET /api/approvals` lists them, `?status=pending` those that wait.",
}

PROBLEM = {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}


def refusals(*statuses: int) -> dict[str, Any]:
    """For `openapi_extra`: the problems that an operation answers beyond those that all share."""
    return {"responses": {status: {"description": WORDS[status], "content": PROBLEM} for status in statuses}}


class DescribedAPI(NinjaAPI):
    """An API whose description names the problems and calls operations by their functions' names."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        """The name of the operation's function, which is unique over all routers."""
        name: str = operation.view_func.__name__
        return name

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        """The OpenAPI document, with what every operation answers when it cannot do what was asked."""
        document = super().get_openapi_schema(path_prefix=path_prefix, path_params=path_params)
        document["components"]["schemas"]["Problem"] = Problem.model_json_schema(
            ref_template="#/components/schemas/{model}"
        )
        definitions = document["components"]["schemas"]["Problem"].pop("$defs", {})
        document["components"]["schemas"].update(definitions)
        for shape in document["components"]["schemas"].values():
            if shape.get("additionalProperties") is not False:  # else it is a request's body
                _add_example_ids(shape.get("properties", {}))
        for operation in (each for path in document["paths"].values() for each in path.values()):
            for parameter in operation["parameters"]:
                parameter.pop("examples", None)  # a list, which OpenAPI has in a schema alone; there it stays
                if parameter["in"] == "path":
                    parameter["description"] = FOUND_AT[parameter["name"]]
            _add_shared_problems(operation)
        return document


def _add_example_ids(properties: dict[str, Any]) -> None:
    """An id in an answer looks like an id: without an example the page would show the word "string"."""
    for name, field in properties.items():
        types = {kind.get("type") for kind in field.get("anyOf", [field])}
        if (name == "id" or name.endswith("_id")) and types <= {"string", "null"} and "default" not in field:
            field.setdefault("examples", ["1"])


def _add_shared_problems(operation: dict[str, Any]) -> None:
    shared = [401, 429] if operation.get("security") else []
    if operation["parameters"] or "requestBody" in operation:
        shared.append(422)
    for status, answer in refusals(*shared)["responses"].items():
        operation["responses"].setdefault(status, answer)
    operation["responses"]["default"] = {"description": HTTPStatus(500).phrase, "content": PROBLEM}
