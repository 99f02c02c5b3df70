"""Absolute links, for people who open them elsewhere."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse


def absolute_link(request: HttpRequest, name: str, *args: str) -> str:
    """Return a page's address under the configured origin; without HTTPS, under the request's own."""
    path = reverse(name, args=args)
    return f"{settings.GADGET_ORIGIN}{path}" if settings.GADGET_ORIGIN else request.build_absolute_uri(path)
