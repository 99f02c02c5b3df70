"""Helpers for tool authors: run a tool, judge a call or build its card, without a database,
employee or run."""

import json
from dataclasses import dataclass
from typing import Any

from tools.contract import NO_PREVIEW, Preview, Tool, ToolContext, ToolError, ToolResult
from tools.toolbox import (
    Grants,
    Guards,
    Policy,
    PreparedCall,
    ProcessRateLimiter,
    Verdict,
    judge_call,
    refuse_invalid_tool,
    run_call,
    run_isolated,
)
from tools.toolbox.isolation import convert_returned
from tools.toolbox.limits import UNGUARDED


class Memory:
    """An in-memory cache and rate limiter for `cacheable_s` and `rate_limit`; in production, all
    workers share a cache and a limiter.

    Attributes:
        now: the current time in seconds; only the test advances it.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._cached: dict[str, tuple[float, str]] = {}
        self._limiter = ProcessRateLimiter(lambda: self.now)

    def run_tool(
        self, tool: Tool | type[Tool], params: dict[str, Any] | None = None, **context: Any
    ) -> ToolResult:
        """Run the tool like the function `run_tool`, with this cache and rate limiter."""
        return _run(_instantiate(tool), params or {}, context, Guards(self, self._limiter))

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the cached result as JSON; None if there is none, or it has expired."""
        until, text = self._cached.get(key, (self.now, ""))
        return json.loads(text) if until > self.now else None

    def put(self, key: str, result: dict[str, Any], seconds: float) -> None:
        """Cache the result for this many seconds."""
        self._cached[key] = (self.now + seconds, json.dumps(result))


@dataclass(frozen=True)
class CardPreview:
    """The card that a person sees before a call of the tool: one sentence and the effect."""

    sentence: str
    preview: Preview


def run_tool(
    tool: Tool | type[Tool], params: dict[str, Any] | None = None, **context: Any
) -> ToolResult:
    """Run one call and return the result that a model would get. Params are checked, and failures
    become results.

    Tools of every level run without approval. Nothing is cached or rate limited.

    Args:
        tool: an instance, or a class that needs no arguments.
        params: as the model would send them.
        context: attributes of `ToolContext`; the organization's id is 1 unless given.
    """
    return _run(_instantiate(tool), params or {}, context, UNGUARDED)


def judge_tool(
    tool: Tool | type[Tool],
    params: dict[str, Any] | None = None,
    grants: Grants | None = None,
    policy: Policy | None = None,
) -> Verdict:
    """Return the gate's verdict on one call: whether it runs, needs a decision or is refused, with
    the reason.

    Args:
        grants: the employee's grants; None grants only this tool.
        policy: the installation's policy; None disables nothing.
    """
    instance = _instantiate(tool)
    granted = grants if grants is not None else Grants(frozenset({instance.name}))
    return judge_call(instance, params or {}, granted, policy or Policy())


def build_card(
    tool: Tool | type[Tool], params: dict[str, Any] | None = None, **context: Any
) -> CardPreview:
    """Build the card that a person would see. Without a preview, the card says that the effect is
    unknown.

    Args:
        params: as the model would send them.
        context: attributes of `ToolContext`; the organization's id is 1 unless given.

    Raises:
        ToolError: the params are wrong, the preview shows that the call cannot succeed, or the tool
            returns something other than a preview or a sentence; no card would appear.
        Exception: the preview or the sentence failed. A real card would only say that it failed; a
            test should see the reason.
    """
    instance = _instantiate(tool)
    checked = instance.load_params(instance.check_params(params or {}))
    found = convert_returned(
        instance, "preview", instance.preview(checked, _build_context(context))
    )
    preview = found or Preview.impossible(NO_PREVIEW)
    return CardPreview(
        convert_returned(instance, "sentence", instance.sentence(checked, preview)), preview
    )


def _run(tool: Tool, params: dict[str, Any], context: dict[str, Any], guards: Guards) -> ToolResult:
    try:
        canonical = run_isolated(tool, "check_params", lambda: tool.check_params(params))
    except ToolError as error:
        return ToolResult.failed(error)
    return run_call(
        PreparedCall(0, tool, canonical, _build_context(context), tool.timeout_s or 30.0, guards)
    )


def _instantiate(tool: Tool | type[Tool]) -> Tool:
    """Return the tool, checked as the toolbox checks it."""
    instance = tool() if isinstance(tool, type) else tool
    refuse_invalid_tool(instance)
    return instance


def _build_context(context: dict[str, Any]) -> ToolContext:
    return ToolContext(**{"organization_id": 1, **context})
