"""Requests from this machine, which a few pages treat differently."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest

LOOPBACK = frozenset({"127.0.0.1", "::1", "::ffff:127.0.0.1"})
FORWARDED_HEADER = "X-Gadget-Forwarded"
"""The header that marks a request as forwarded by a proxy; it replaces the proxy's own headers."""


def is_from_this_machine(request: HttpRequest) -> bool:
    """Return True for a local client, as long as no other machine can reach Gadget.

    Return False behind a proxy, because every client then seems local.
    """
    is_loopback = request.META.get("REMOTE_ADDR", "") in LOOPBACK
    return settings.GADGET_ONLY_LOCAL and is_loopback and FORWARDED_HEADER not in request.headers
