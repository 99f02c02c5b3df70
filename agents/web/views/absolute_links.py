"""Absolute links, which people send to others or open on another device."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse


def build_absolute_link(request: HttpRequest, name: str, *args: str) -> str:
    """Build a page's address from the configured origin or, if there is none, from the request's
    host."""
    return make_absolute(request, reverse(name, args=args))


def make_absolute(request: HttpRequest, path: str) -> str:
    """Put the configured origin before the path, or the request's own origin if none is
    configured."""
    return (
        f"{settings.GADGET_ORIGIN}{path}"
        if settings.GADGET_ORIGIN
        else request.build_absolute_uri(path)
    )
