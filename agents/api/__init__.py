"""The REST API under /api/: short operations that load rows, call an action, and respond."""

from typing import Any, NoReturn

from django.http import Http404, HttpRequest
from django.urls import URLPattern, URLResolver
from ninja import Router

from agents.api import (
    approval_rules,
    approvals,
    asks,
    employees,
    health,
    notices,
    runs,
    standing_grants,
    tool_calls,
    tools,
)
from agents.api.auth import BearerToken, SessionCookie
from agents.api.documentation import DESCRIPTION, DOCS_PAGE, TAGS, DescribedAPI
from agents.api.parsing import StrictParser
from agents.api.problems import register_problem_responses, wrap_with_problems

ALL_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

fallback = Router(auth=None)


class GadgetAPI(DescribedAPI):
    """The API with all its routes; it reports errors as problems."""

    @property
    def urls(self) -> tuple[list[URLPattern | URLResolver], str, str]:
        """The URL configuration for Django."""
        patterns, application, namespace = super().urls
        for pattern in patterns:
            if isinstance(pattern, URLPattern):
                pattern.callback = wrap_with_problems(pattern.callback)
        return patterns, application, namespace


@fallback.api_operation(ALL_METHODS, "/{path:rest}", include_in_schema=False)
def refuse_unknown_path(request: HttpRequest, rest: str) -> NoReturn:
    """Return 404 for every path that no other route matches."""
    raise Http404


def _build_api() -> GadgetAPI:
    extra: dict[str, Any] = {"tags": TAGS}
    gadget_api = GadgetAPI(
        title="Gadget REST API",
        version="1.0",
        description=DESCRIPTION,
        docs=DOCS_PAGE,
        auth=[BearerToken(), SessionCookie()],
        parser=StrictParser(),
        openapi_extra=extra,
    )
    register_problem_responses(gadget_api)
    gadget_api.add_router("/employees", employees.router)
    gadget_api.add_router("/tools", tools.router)
    gadget_api.add_router("/runs", runs.router)
    gadget_api.add_router("/tool_calls", tool_calls.router)
    gadget_api.add_router("/approvals", approvals.router)
    gadget_api.add_router("/standing_grants", standing_grants.router)
    gadget_api.add_router("/approval_rules", approval_rules.rules_router)
    gadget_api.add_router("/groups", approval_rules.groups_router)
    gadget_api.add_router("/notices", notices.router)
    gadget_api.add_router("/asks", asks.router)
    gadget_api.add_router("", health.router)
    gadget_api.add_router("", fallback)
    return gadget_api


api = _build_api()
