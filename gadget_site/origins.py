"""Which pages may open a WebSocket: those of this very host, and those of ALLOWED_ORIGINS."""

from __future__ import annotations

from typing import Any

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import validate_host

DEFAULT_PORTS = {"http": "80", "https": "443"}


class KnownOrigins:
    """Passes a socket on when its Origin has this request's own scheme, host and port, or is listed.

    A browser always says where a page came from, so a cookie without an Origin is refused. Programs that bring a
    token have no page: without an Origin they pass, and the consumer judges the token.
    """

    def __init__(self, application: Any) -> None:
        self._application = application
        self._denier = WebsocketDenier.as_asgi()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        application = self._application if is_known(scope) else self._denier
        return await application(scope, receive, send)


def is_known(scope: dict[str, Any]) -> bool:
    """Whether this ASGI scope's Origin may open a socket."""
    headers: dict[bytes, str] = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
    origin = headers.get(b"origin")
    if origin is None:
        return headers.get(b"authorization", "").lower().startswith("bearer ")
    known = {_whole(allowed) for allowed in settings.ALLOWED_ORIGINS}
    known |= _own_origins(scope, headers.get(b"host", ""))
    return _whole(origin) in known


def _own_origins(scope: dict[str, Any], host: str) -> set[str]:
    scheme = "https" if scope.get("scheme") in {"wss", "https"} else "http"
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if not validate_host(name.lower(), settings.ALLOWED_HOSTS):
        return set()
    return {_whole(f"{scheme}://{host}")}


def _whole(origin: str) -> str:
    """The origin in lower case with its port written out."""
    scheme, _, host = origin.lower().rstrip("/").partition("://")
    has_port = host.rpartition(":")[2].isdigit() and not host.endswith("]")
    return f"{scheme}://{host}" if has_port else f"{scheme}://{host}:{DEFAULT_PORTS.get(scheme, '')}"
