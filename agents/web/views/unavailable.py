"""The page for a database outage, with the database's condition in one sentence and the next
step."""

from __future__ import annotations

import sys
from collections.abc import Callable

import structlog
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.defaults import server_error

from agents.platform.database_outages import describe_outage

log = structlog.get_logger(__name__)
RETRY_AFTER_S = "5"


class DatabaseConditionMiddleware:
    """Middleware that returns 503 and an explanatory page during a database outage."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the page for a database outage that a view or its template ran into; None for any
        other error."""
        condition = describe_outage(exception)
        return _render_unavailable(request, condition, exception) if condition else None


def handle_error(request: HttpRequest) -> HttpResponseBase:
    """Return the response to an error that no middleware handled, such as one from the session."""
    error = sys.exc_info()[1]
    condition = describe_outage(error) if error is not None else ""
    return _render_unavailable(request, condition, error) if condition else server_error(request)


def _render_unavailable(
    request: HttpRequest, condition: str, error: BaseException | None
) -> HttpResponse:
    log.error(
        "page not available", path=request.path, condition=condition, error=str(error).strip()
    )
    context = {"condition": condition, "is_form": request.method == "POST"}
    page = render(request, "parts/unavailable.html", context, status=503)
    page["Retry-After"] = RETRY_AFTER_S
    page["Cache-Control"] = "no-store"
    return page
