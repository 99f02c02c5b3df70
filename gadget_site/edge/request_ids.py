"""Give every request a correlation id, and return it in the response."""

from __future__ import annotations

from typing import Any

from agents.platform.log_context import correlate
from tools.contract.correlation import CORRELATION_HEADER, choose_correlation_id

NAME = CORRELATION_HEADER.lower().encode()


class RequestIds:
    """Middleware that uses the id of a request's header `X-Request-ID` if it is acceptable, or else
    a new one."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        if scope["type"] not in ("http", "websocket"):
            return await self._application(scope, receive, send)
        sent = [value for name, value in scope["headers"] if name.lower() == NAME]
        chosen = choose_correlation_id(sent[0].decode("latin-1") if len(sent) == 1 else "")
        correlate(chosen)

        async def send_with_id(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = {
                    **message,
                    "headers": [*message.get("headers", ()), (NAME, chosen.encode())],
                }
            await send(message)

        return await self._application(scope, receive, send_with_id)
