"""Serve one path with a separate application."""

from __future__ import annotations

from typing import Any


class AtPath:
    """Middleware that hands requests for one path, with or without a final slash, to another
    application."""

    def __init__(self, path: str, application: Any, others: Any) -> None:
        self._path = path
        self._application = application
        self._others = others

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        is_meant = scope["path"].rstrip("/") == self._path
        return await (self._application if is_meant else self._others)(scope, receive, send)
