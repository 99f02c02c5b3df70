"""The parts of the OpenAPI description that are not schemas: problems, tags, and how to log in."""

from http import HTTPStatus
from typing import Any

from ninja import NinjaAPI
from ninja.openapi.docs import Swagger
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from agents.api.problems import CONTENT_TYPE
from agents.api.schemas import Problem

DESCRIPTION = """
AI employees do real work with real tools. A person approves every change, on a card or in advance by a standing grant.

**Log in** with a browser session (changes also need the header `X-CSRFToken`), or send
`Authorization: Bearer TOKEN`. Create a token in the admin or with `python manage.py create_api_token USERNAME`.

**Ids** are strings, times are ISO 8601 in UTC, durations are milliseconds and end in `_ms`.
**Errors** are `application/problem+json`; branch on `code`.
**Lists** are `{"items": [...], "next_cursor": ...}`. Send the cursor to get the next page; null marks the last one.
""".strip()

TAGS = [
    {
        "name": "Runs",
        "description": "Start, follow, instruct and cancel runs, from task to answer.",
    },
    {"name": "Approvals", "description": "Read and decide cards, and answer questions."},
    {
        "name": "Approval rules",
        "description": "Read who must approve which cards. Admins edit the rules in the admin.",
    },
    {
        "name": "Asks",
        "description": "Ask for approval of actions that an agent runs itself, and report their outcome.",
    },
    {
        "name": "Notices",
        "description": "Read your notices, and send failed ones again.",
    },
    {
        "name": "Standing grants",
        "description": "Approve cards of one kind in advance, for a limited time.",
    },
    {
        "name": "Tool calls",
        "description": "Read the calls of tools with their results, and resolve unknown outcomes.",
    },
    {
        "name": "Employees",
        "description": "Read employees, their allowed tools and their statistics.",
    },
    {"name": "Tools", "description": "Read the catalog of tools with their statistics."},
    {"name": "Health", "description": "Checks for load balancers and monitoring; no login needed."},
]

STATUS_DESCRIPTIONS = {
    401: "Not logged in, or an invalid token.",
    403: "Your role does not allow this.",
    404: "Not found in your organization.",
    409: "Not possible in the current state, e.g. already decided (see `decided_by`, `decided_at`) or ended.",
    410: "The card has expired.",
    412: "The digest does not match the current card.",
    422: "A field is invalid; `field` and `errors` say which and why.",
    429: "Too many invalid tokens; see Retry-After.",
    503: "The database is unavailable.",
}


class DocumentationPage(Swagger):
    """The documentation page of the REST API, in Gadget's design."""

    template = "api/documentation.html"


# Turn off links inside buttons, and syntax colors, which have no dark mode. static/css/api.css and
# static/js/api.js do the rest of the adaptation.
DOCS_PAGE = DocumentationPage(
    settings={"deepLinking": False, "syntaxHighlight": False, "defaultModelsExpandDepth": 0}
)

# Ids in paths do not get an invented example, because no row would have that id. For some GET
# requests, static/js/api.js adds the id of one of the user's own rows.
ID_DESCRIPTIONS = {
    "bulk_id": "The `bulk_id` of a bulk decision: `GET /api/approvals` lists it with each of its cards.",
    "ask_id": "The `id` of an ask: `GET /api/asks` lists them.",
    "notice_id": "The `id` of a notice: `GET /api/notices` lists them.",
    "grant_id": "The `id` of a standing grant: `GET /api/standing_grants` lists them.",
    "employee_id": "The `id` of an employee: `GET /api/employees` lists them.",
    "run_id": "The `id` of a run: `GET /api/runs` lists them, and `POST /api/runs` starts one.",
    "call_id": "The `id` of a tool call: `GET /api/runs/{run_id}` lists a run's calls under `tool_calls`.",
    "approval_id": "The `id` of a card: `GET /api/approvals` lists them; with `?status=pending`, only waiting ones.",
}

PROBLEM_CONTENT = {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}


def document_problems(*statuses: int) -> dict[str, Any]:
    """Return an `openapi_extra` with the problems that this operation returns in addition to those
    that every operation returns."""
    return {
        "responses": {
            status: {"description": STATUS_DESCRIPTIONS[status], "content": PROBLEM_CONTENT}
            for status in statuses
        }
    }


class DescribedAPI(NinjaAPI):
    """An API whose description includes problems, and uses the names of functions as operation
    ids."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        """Return the name of the operation's function, which is unique across all routers."""
        name: str = operation.view_func.__name__
        return name

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        """Return the OpenAPI document, with the problems that each operation returns."""
        document = super().get_openapi_schema(path_prefix=path_prefix, path_params=path_params)
        document["components"]["schemas"]["Problem"] = Problem.model_json_schema(
            ref_template="#/components/schemas/{model}"
        )
        definitions = document["components"]["schemas"]["Problem"].pop("$defs", {})
        document["components"]["schemas"].update(definitions)
        for shape in document["components"]["schemas"].values():
            # Skip request bodies, which do not get example ids; only they forbid other properties.
            if shape.get("additionalProperties") is not False:
                _add_example_ids(shape.get("properties", {}))
        for operation in (each for path in document["paths"].values() for each in path.values()):
            for parameter in operation["parameters"]:
                # OpenAPI allows a list of examples only in a schema; the parameter's schema keeps
                # its own.
                parameter.pop("examples", None)
                if parameter["in"] == "path":
                    parameter["description"] = ID_DESCRIPTIONS[parameter["name"]]
            _add_shared_problems(operation)
        return document


def _add_example_ids(properties: dict[str, Any]) -> None:
    """Add an example to each id in a response; without one, the page would show "string"."""
    for name, field in properties.items():
        types = {kind.get("type") for kind in field.get("anyOf", [field])}
        if (
            (name == "id" or name.endswith("_id"))
            and types <= {"string", "null"}
            and "default" not in field
        ):
            field.setdefault("examples", ["1"])


def _add_shared_problems(operation: dict[str, Any]) -> None:
    shared = [401, 429] if operation.get("security") else []
    if operation["parameters"] or "requestBody" in operation:
        shared.append(422)
    for status, response in document_problems(*shared)["responses"].items():
        operation["responses"].setdefault(status, response)
    operation["responses"]["default"] = {
        "description": HTTPStatus(500).phrase,
        "content": PROBLEM_CONTENT,
    }
