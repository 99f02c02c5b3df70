"""Serve the service worker, the script that shows notices while no page is open."""

from __future__ import annotations

from pathlib import Path

from django.contrib.staticfiles import finders
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.http import require_safe


@require_safe
def service_worker(_request: HttpRequest) -> HttpResponseBase:
    """Serve the script at the root, because a service worker controls the pages below its own
    address.

    The script is the same for everybody. Browsers ask for a new version whenever they check it.
    """
    path = finders.find("js/service-worker.js")
    if not isinstance(path, str):
        raise Http404
    response = HttpResponse(Path(path).read_bytes(), content_type="text/javascript; charset=utf-8")
    response["Cache-Control"] = "no-cache"
    return response
