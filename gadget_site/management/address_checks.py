"""The doctor's checks of the addresses under which people reach Gadget."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import validate_host

from gadget_site.demo.accounts import is_loopback
from gadget_site.management.findings import Finding


def check_addresses() -> Iterator[Finding]:
    """Check that hosts, origins and proxies match; a mismatch is noticed only when another machine
    connects."""
    findings = [*_check_origins(), *_check_proxies()]
    yield from findings or [Finding("addresses", "hosts, origins and proxies match")]


def _check_origins() -> Iterator[Finding]:
    for origin in settings.ALLOWED_ORIGINS:
        host = urlsplit(origin).hostname or ""
        if not validate_host(host, settings.ALLOWED_HOSTS):
            fix = f"add {host} to ALLOWED_HOSTS, or remove the origin"
            yield Finding(
                "addresses",
                f"{origin} is in ALLOWED_ORIGINS, but {host} is not in ALLOWED_HOSTS",
                fix,
            )
        if origin.startswith("http://") and not settings.DEBUG and not is_loopback(host):
            text = f"{origin} is not encrypted: passwords and cookies can be read in transit"
            yield Finding("addresses", text, f"serve https, and set ALLOWED_ORIGINS=https://{host}")


def _check_proxies() -> Iterator[Finding]:
    """Report a missing trusted proxy if Gadget is served over https. Gadget itself speaks only
    http, so https needs a proxy."""
    if settings.GADGET_ORIGIN and not settings.GADGET_TRUSTED_PROXIES:
        text = "Gadget is served over https, but no proxy is trusted: requests seem to come from the proxy over http"
        yield Finding("addresses", text, "set TRUSTED_PROXIES to the address of your proxy")
