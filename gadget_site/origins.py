"""Refuse WebSockets and agents from unknown origins, and agents' requests to other hosts."""

from __future__ import annotations

from typing import Any

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import validate_host

DEFAULT_PORTS = {"http": "80", "https": "443"}


class KnownOrigins:
    """Middleware that accepts a socket if its Origin matches the request's scheme, host and port,
    or is listed.

    Browsers always send an Origin. A request without an Origin is refused, unless it has a bearer
    token, which the consumer checks.
    """

    def __init__(self, application: Any) -> None:
        self._application = application
        self._denier = WebsocketDenier.as_asgi()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        application = self._application if is_known_origin(scope) else self._denier
        return await application(scope, receive, send)


class KnownHosts:
    """Middleware for agents: the Host must be ours, and an Origin, which only browsers send, must
    be known."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        headers: dict[bytes, str] = {
            name.lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        if _is_own_host(headers.get(b"host", "")) and (
            b"origin" not in headers or is_known_origin(scope)
        ):
            return await self._application(scope, receive, send)
        await send(
            {
                "type": "http.response.start",
                "status": 403,
                "headers": [(b"content-type", b"text/plain")],
            }
        )
        await send({"type": "http.response.body", "body": b"This host or origin is not allowed.\n"})
        return None


def is_known_origin(scope: dict[str, Any]) -> bool:
    """Return True if this ASGI scope may open a socket: its Origin is known, or it has none and
    sends a bearer token."""
    headers: dict[bytes, str] = {
        name.lower(): value.decode("latin-1") for name, value in scope["headers"]
    }
    origin = headers.get(b"origin")
    if origin is None:
        return headers.get(b"authorization", "").lower().startswith("bearer ")
    known = {_normalize(allowed) for allowed in settings.ALLOWED_ORIGINS}
    known |= _list_own_origins(scope, headers.get(b"host", ""))
    return _normalize(origin) in known


def _list_own_origins(scope: dict[str, Any], host: str) -> set[str]:
    scheme = "https" if scope.get("scheme") in {"wss", "https"} else "http"
    if not _is_own_host(host):
        return set()
    return {_normalize(f"{scheme}://{host}")}


def _is_own_host(host: str) -> bool:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    return validate_host(name.lower(), settings.ALLOWED_HOSTS)


def _normalize(origin: str) -> str:
    """Return the origin in lower case with an explicit port."""
    scheme, _, host = origin.lower().rstrip("/").partition("://")
    has_port = host.rpartition(":")[2].isdigit() and not host.endswith("]")
    return (
        f"{scheme}://{host}" if has_port else f"{scheme}://{host}:{DEFAULT_PORTS.get(scheme, '')}"
    )
