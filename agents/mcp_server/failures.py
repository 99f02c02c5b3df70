"""Hide internal errors from agents. Only the log contains the reason, because it may include a key,
a path or SQL."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError

from agents.platform.error_boundary import log_and_continue

Args = ParamSpec("Args")
Response = TypeVar("Response")
FAILED = "Gadget failed to respond; the reason is in its log. Try again later."


def hide_failures(
    handle: Callable[Args, Coroutine[Any, Any, Response]],
) -> Callable[Args, Coroutine[Any, Any, Response]]:
    """Wrap a handler so that an unexpected exception becomes an internal error. Otherwise, the SDK
    would send the exception's text."""

    @wraps(handle)
    async def respond(*args: Args.args, **kwargs: Args.kwargs) -> Response:
        refusal = MCPError(types.INTERNAL_ERROR, FAILED)
        with log_and_continue("an MCP request"):
            try:
                return await handle(*args, **kwargs)
            except MCPError as error:
                refusal = error
        raise refusal

    return respond
