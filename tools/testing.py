"""For people who write tools: run one, judge a call, see its card, without a database, an employee or a run."""

import json
from dataclasses import dataclass
from typing import Any

from tools.contract import Preview, RateLimit, Tool, ToolContext, ToolError, ToolResult
from tools.toolbox import Grants, Guards, Policy, PreparedCall, Verdict, isolated, run_call, verdict_for
from tools.toolbox.limits import UNGUARDED


class Memory:
    """Keeps the results of tools with `cacheable_s` and counts calls for `rate_limit`, as all workers together do.

    Attributes:
        now: its clock in seconds, which stands still until a test moves it on.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._kept: dict[str, tuple[float, str]] = {}
        self._called: dict[str, list[float]] = {}

    def run_tool(self, tool: Tool | type[Tool], params: dict[str, Any] | None = None, **context: Any) -> ToolResult:
        """The same as `run_tool`, with kept results and counted calls."""
        return _run(_instance(tool), params or {}, context, Guards(self, self))

    def get(self, key: str) -> dict[str, Any] | None:
        """The kept result, as JSON, while its time is not over."""
        until, text = self._kept.get(key, (self.now, ""))
        return json.loads(text) if until > self.now else None

    def put(self, key: str, result: dict[str, Any], seconds: float) -> None:
        """Keep the result for so long."""
        self._kept[key] = (self.now + seconds, json.dumps(result))

    def seconds_to_wait(self, key: str, limit: RateLimit) -> float:
        """0 if this call may run, and counts it; else how long until one may."""
        recent = [at for at in self._called.get(key, []) if at > self.now - limit.seconds]
        if len(recent) >= limit.calls:
            return recent[0] + limit.seconds - self.now
        self._called[key] = [*recent, self.now]
        return 0.0


@dataclass(frozen=True)
class Card:
    """What a person is shown before a call of the tool: one sentence, and the effect."""

    sentence: str
    preview: Preview


def run_tool(tool: Tool | type[Tool], params: dict[str, Any] | None = None, **context: Any) -> ToolResult:
    """The result of one call, exactly as a model would get it: params checked, failures made into results.

    A tool of any level is run, without asking anybody. Nothing is kept, and nothing is limited.

    Args:
        tool: an instance, or a class that needs no arguments.
        params: as the model would send them.
        context: attributes of `ToolContext`; the organization's id is 1 unless given.
    """
    return _run(_instance(tool), params or {}, context, UNGUARDED)


def verdict_of(
    tool: Tool | type[Tool],
    params: dict[str, Any] | None = None,
    grants: Grants | None = None,
    policy: Policy | None = None,
) -> Verdict:
    """What the gate says of one call: whether it runs by itself, waits for a person or is refused, and why.

    Args:
        grants: of the employee; the tool alone and nothing else unless given.
        policy: of the installation; one that switches nothing off unless given.
    """
    instance = _instance(tool)
    granted = grants if grants is not None else Grants(frozenset({instance.name}))
    return verdict_for(instance, params or {}, granted, policy or Policy())


def card_of(tool: Tool | type[Tool], params: dict[str, Any] | None = None, **context: Any) -> Card:
    """What a person would decide about; without a preview, the card says that the effect cannot be told.

    Args:
        params: as the model would send them.
        context: attributes of `ToolContext`; the organization's id is 1 unless given.

    Raises:
        ToolError: the params are wrong, or the tool's preview says that the call cannot work; nobody would be asked.
        Exception: the preview or the sentence failed. A real card says only so; a test should know why.
    """
    instance = _instance(tool)
    checked = instance.load_params(instance.check_params(params or {}))
    preview = instance.preview(checked, _told(context)) or Preview.impossible("This tool has no preview.")
    return Card(instance.sentence(checked, preview), preview)


def _run(tool: Tool, params: dict[str, Any], context: dict[str, Any], guards: Guards) -> ToolResult:
    try:
        canonical = isolated(tool, "check_params", lambda: tool.check_params(params))
    except ToolError as error:
        return ToolResult.failed(error)
    return run_call(PreparedCall(0, tool, canonical, _told(context), tool.timeout_s or 30.0, guards))


def _instance(tool: Tool | type[Tool]) -> Tool:
    return tool() if isinstance(tool, type) else tool


def _told(context: dict[str, Any]) -> ToolContext:
    return ToolContext(**{"organization_id": 1, **context})
