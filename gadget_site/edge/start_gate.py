"""Return 503 to everything but health checks and metrics while the web part waits for a migrated
database."""

from __future__ import annotations

import threading
from typing import Any

RETRY_AFTER_S = 2
ALWAYS_OPEN = frozenset({"/api/health", "/api/ready", "/metrics"})
CLOSED = threading.Event()
"""Set while this process waits for a migrated database. Only the web part sets it, before it
listens."""
TEXT = b"Gadget is starting: it waits for a migrated database. /api/ready says why.\n"


class StartGate:
    """Middleware that lets only health checks and metrics through while the gate is closed."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        if not CLOSED.is_set() or scope["path"].rstrip("/") in ALWAYS_OPEN:
            return await self._application(scope, receive, send)
        if scope["type"] == "websocket":
            return await send({"type": "websocket.close"})
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"retry-after", str(RETRY_AFTER_S).encode()),
        ]
        await send({"type": "http.response.start", "status": 503, "headers": headers})
        return await send({"type": "http.response.body", "body": TEXT})
