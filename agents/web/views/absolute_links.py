"""Absolute links, which people send to others or open on another device."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse


def build_absolute_link(request: HttpRequest, name: str, *args: str) -> str:
    """Build a page's address from the configured origin, or without one from the request's host."""
    path = reverse(name, args=args)
    return f"{settings.GADGET_ORIGIN}{path}" if settings.GADGET_ORIGIN else request.build_absolute_uri(path)
