"""`/metrics`: the installation's metrics, for monitoring tools that have the token or run on this
machine."""

from __future__ import annotations

from hmac import compare_digest

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from agents.insight.metrics import get_metrics
from agents.web.local_requests import is_from_this_machine


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return the metrics. A wrong token gets status 401; if no token is set, other machines get
    404.

    A login does not give access.
    """
    if settings.GADGET_METRICS_TOKEN:
        if not _has_token(request):
            return _refuse(401, "Send the token of GADGET_METRICS_TOKEN: Authorization: Bearer …")
    elif not is_from_this_machine(request):
        return _refuse(404, "Not found.")
    return HttpResponse(
        get_metrics(), content_type=CONTENT_TYPE_LATEST, headers={"Cache-Control": "no-store"}
    )


def _has_token(request: HttpRequest) -> bool:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    is_equal = compare_digest(given.strip().encode(), settings.GADGET_METRICS_TOKEN.encode())
    return scheme.lower() == "bearer" and is_equal


def _refuse(status: int, text: str) -> HttpResponse:
    headers = {"Cache-Control": "no-store"} | (
        {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    )
    return HttpResponse(
        f"{text}\n", status=status, content_type="text/plain; charset=utf-8", headers=headers
    )
