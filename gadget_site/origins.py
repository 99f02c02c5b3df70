"""Restrict WebSockets to pages of this host and of ALLOWED_ORIGINS."""

from __future__ import annotations

from typing import Any

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import validate_host

DEFAULT_PORTS = {"http": "80", "https": "443"}


class KnownOrigins:
    """Middleware that accepts a socket if its Origin matches the request's scheme, host and port, or is listed.

    Browsers always send an Origin, so a cookie without one is refused. Programs with a token may omit it: the consumer
    checks the token.
    """

    def __init__(self, application: Any) -> None:
        self._application = application
        self._denier = WebsocketDenier.as_asgi()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        application = self._application if is_known_origin(scope) else self._denier
        return await application(scope, receive, send)


def is_known_origin(scope: dict[str, Any]) -> bool:
    """Return True if the Origin of this ASGI scope may open a socket."""
    headers: dict[bytes, str] = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
    origin = headers.get(b"origin")
    if origin is None:
        return headers.get(b"authorization", "").lower().startswith("bearer ")
    known = {_normalize(allowed) for allowed in settings.ALLOWED_ORIGINS}
    known |= _list_own_origins(scope, headers.get(b"host", ""))
    return _normalize(origin) in known


def _list_own_origins(scope: dict[str, Any], host: str) -> set[str]:
    scheme = "https" if scope.get("scheme") in {"wss", "https"} else "http"
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if not validate_host(name.lower(), settings.ALLOWED_HOSTS):
        return set()
    return {_normalize(f"{scheme}://{host}")}


def _normalize(origin: str) -> str:
    """Return the origin in lower case with an explicit port."""
    scheme, _, host = origin.lower().rstrip("/").partition("://")
    has_port = host.rpartition(":")[2].isdigit() and not host.endswith("]")
    return f"{scheme}://{host}" if has_port else f"{scheme}://{host}:{DEFAULT_PORTS.get(scheme, '')}"
