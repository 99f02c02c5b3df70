"""The result cache and the rate limiter of tool calls.

Both are interfaces: `agents` provides implementations that all workers share. Without an
implementation, nothing is cached or limited.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from tools.contract import (
    ErrorCode,
    InvalidTool,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    fingerprint,
)
from tools.toolbox.rate_limits import RateLimiter

MAX_CACHED_CHARACTERS = 1_000_000
"""The maximum size, in characters of JSON, of a result that is cached."""


class ResultCache(Protocol):
    """A cache of results as JSON, which may drop them before they expire."""

    def get(self, key: str) -> dict[str, Any] | None: ...

    def put(self, key: str, result: dict[str, Any], seconds: float) -> None: ...


@dataclass(frozen=True)
class Guards:
    """The result cache and the rate limiter of an installation; each may be None."""

    cache: ResultCache | None = None
    limiter: RateLimiter | None = None

    def get_or_run(
        self,
        tool: Tool,
        params: dict[str, Any],
        context: ToolContext,
        work: Callable[[], ToolResult],
    ) -> ToolResult:
        """Return the cached result of the same call, or run `work` and cache its result.

        Raises:
            ToolError: RATE_LIMITED, with the time to wait; the call was not attempted.
        """
        key = _build_key(tool, params, context) if tool.cacheable_s else ""
        cached = self.cache.get(key) if key and self.cache else None
        if cached is not None:
            return _load_cached(cached)
        self._count(tool, context)
        result = work()
        if key and self.cache and result.success:
            self.cache.put(key, result.as_json(), tool.cacheable_s)
        return result

    def _count(self, tool: Tool, context: ToolContext) -> None:
        limit = tool.rate_limit
        if limit is None or self.limiter is None:
            return
        wait_s = self.limiter.seconds_to_wait(f"{context.organization_id}:{tool.name}", limit)
        if wait_s > 0:
            raise ToolError(
                ErrorCode.RATE_LIMITED,
                f"Limit reached for {tool.title}: {limit.calls} call{'s' * (limit.calls != 1)} in {limit.seconds:g} s.",
                recovery_hint=f"Try again in {math.ceil(wait_s)} s.",
                attempted=False,
            )


UNGUARDED = Guards()


def refuse_invalid_limits(tool: Tool, where: str) -> None:
    """Raise InvalidTool if the tool's cache or rate limit contradicts its other attributes."""
    limit = tool.rate_limit
    if limit is not None and (limit.calls < 1 or limit.seconds <= 0):
        raise InvalidTool(
            f"{where}: {tool.name} has the rate limit {limit.calls} calls in {limit.seconds:g} s; both must be positive"
        )
    if limit is not None and tool.transactional:
        raise InvalidTool(f"{where}: {tool.name} is transactional and cannot have a rate limit")
    if tool.cacheable_s and (tool.has_side_effects or tool.volatile):
        raise InvalidTool(
            f"{where}: {tool.name} cannot be cacheable, because it changes something or is volatile"
        )


def _build_key(tool: Tool, params: dict[str, Any], context: ToolContext) -> str:
    return fingerprint([context.organization_id, tool.id, tool.definition_hash, params])


def _load_cached(cached: dict[str, Any]) -> ToolResult:
    return ToolResult.from_json(
        {**cached, "metadata": {**cached["metadata"], "cached": True, "duration_ms": 0}}
    )
