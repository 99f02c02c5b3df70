"""The REST API under /api/: doors that fetch, call and answer."""

from typing import Any, NoReturn

from django.http import Http404, HttpRequest
from django.urls import URLPattern, URLResolver
from ninja import Router

from . import approvals, employees, health, runs, tool_calls, tools
from .auth import BearerToken, SessionCookie
from .documentation import DESCRIPTION, PAGE, TAGS, DescribedAPI
from .parsing import StrictParser
from .problems import answer_in_problems, with_problems

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

elsewhere = Router(auth=None)


class GadgetAPI(DescribedAPI):
    """All routes, each of them answering its errors as problems."""

    @property
    def urls(self) -> tuple[list[URLPattern | URLResolver], str, str]:
        """Django's URL configuration."""
        patterns, application, namespace = super().urls
        for pattern in patterns:
            if isinstance(pattern, URLPattern):
                pattern.callback = with_problems(pattern.callback)
        return patterns, application, namespace


@elsewhere.api_operation(METHODS, "/{path:rest}", include_in_schema=False)
def nothing_there(request: HttpRequest, rest: str) -> NoReturn:
    """Whatever no other route took."""
    raise Http404


def _made() -> GadgetAPI:
    extra: dict[str, Any] = {"tags": TAGS}
    made = GadgetAPI(
        title="Gadget REST API",
        version="1.0",
        description=DESCRIPTION,
        docs=PAGE,
        auth=[BearerToken(), SessionCookie()],
        parser=StrictParser(),
        openapi_extra=extra,
    )
    answer_in_problems(made)
    made.add_router("/employees", employees.router)
    made.add_router("/tools", tools.router)
    made.add_router("/runs", runs.router)
    made.add_router("/tool_calls", tool_calls.router)
    made.add_router("/approvals", approvals.router)
    made.add_router("", health.router)
    made.add_router("", elsewhere)
    return made


api = _made()
