"""What keeps a tool from being called too often: results that are kept for a while, and rate limits.

Both are ports: `agents` fills them so that all workers share one; without one, nothing is kept and nothing is limited.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from tools.contract import ErrorCode, RateLimit, Tool, ToolContext, ToolError, ToolResult, fingerprint

LARGEST_KEPT = 1_000_000
"""Characters of JSON; a larger result is not kept."""


class ResultCache(Protocol):
    """Keeps results as JSON for so many seconds; may forget them earlier."""

    def get(self, key: str) -> dict[str, Any] | None: ...

    def put(self, key: str, result: dict[str, Any], seconds: float) -> None: ...


class RateLimiter(Protocol):
    """Counts calls."""

    def seconds_to_wait(self, key: str, limit: RateLimit) -> float:
        """0 if this call may run, and counts it; else how long until one may."""


@dataclass(frozen=True)
class Guards:
    """The ports, as far as there are any."""

    cache: ResultCache | None = None
    limiter: RateLimiter | None = None

    def result_of(
        self, tool: Tool, params: dict[str, Any], context: ToolContext, work: Callable[[], ToolResult]
    ) -> ToolResult:
        """The kept result of an equal call, or else what `work` returns.

        Raises:
            ToolError: RATE_LIMITED, and when to try again; nothing was attempted.
        """
        key = _key(tool, params, context) if tool.cacheable_s else ""
        kept = self.cache.get(key) if key and self.cache else None
        if kept is not None:
            return _as_kept(kept)
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
                f"{tool.title} may be used {limit.calls} times in {limit.seconds:g} s, and it was.",
                recovery_hint=f"Try again in {math.ceil(wait_s)} s.",
                attempted=False,
            )


UNGUARDED = Guards()


def refuse_unfit_limits(tool: Tool, where: str) -> None:
    """Raise ValueError where keeping or limiting would break another promise of the tool."""
    limit = tool.rate_limit
    if limit is not None and (limit.calls < 1 or limit.seconds <= 0):
        raise ValueError(f"{where}: {tool.name} may be called {limit.calls} times in {limit.seconds:g} s; never?")
    if limit is not None and tool.transactional:
        raise ValueError(f"{where}: {tool.name} is transactional, and nothing is counted inside a transaction")
    if tool.cacheable_s and (tool.has_side_effects or tool.volatile):
        raise ValueError(f"{where}: {tool.name} cannot be cacheable, because it changes something or is volatile")


def _key(tool: Tool, params: dict[str, Any], context: ToolContext) -> str:
    return fingerprint([context.organization_id, tool.id, tool.definition_hash, params])


def _as_kept(kept: dict[str, Any]) -> ToolResult:
    return ToolResult.from_json({**kept, "metadata": {**kept["metadata"], "cached": True, "duration_ms": 0}})
