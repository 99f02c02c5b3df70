"""A plugin with correct tools, and with tools that each have a different fault."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from tools.contract import (
    Delegation,
    ErrorCode,
    Level,
    NoParams,
    Preview,
    Question,
    RateLimit,
    Recipe,
    ResultError,
    Step,
    Target,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
)

NAN = float("nan")
DAY = date(2026, 5, 4)
ran: list[str] = []
"""The names of the writes that ran, one entry for each execution."""


class Right(Tool):
    """A correct read."""

    name = "right.read"
    description = "Look something up."
    level = Level.READ

    class Params(BaseModel):
        """Any text."""

        text: str = "a"

    def execute(self, params: Any, context: ToolContext) -> Any:
        return ToolResult.ok({"text": params.text}, "Looked it up")


class RightWrite(Right):
    """A correct write."""

    name = "right.write"
    level = Level.WRITE

    def preview(self, params: Any, context: ToolContext) -> Any:
        return Preview("create", (Target("", "A thing", after={"text": params.text}),))

    def sentence(self, params: Any, preview: Preview) -> Any:
        return f"Write {params.text}"

    def execute(self, params: Any, context: ToolContext) -> Any:
        ran.append(self.name)
        return ToolResult.ok({"done": True}, "Wrote it")


class Row(BaseModel):
    """A model that a tool returns."""

    id: int = 7
    amount: Decimal = Decimal("1.50")


def _raise_odd_error(*_: object) -> Any:
    error = ToolError(ErrorCode.NOT_FOUND, ValueError("odd"))  # type: ignore[arg-type]
    error.recovery_hint = {"no": "text"}  # type: ignore[assignment]
    raise error


def _tie_knot() -> Any:
    knot: dict[str, Any] = {}
    knot["again"] = knot
    return ToolResult.ok(knot)


WRONG_ATTRIBUTES: dict[str, Any] = {
    "name": None,
    "description": 5,
    "display_name": ["A"],
    "level": "raed",
    "version": 2,
    "author": {"name": "Ann"},
    "Params": {"text": str},
    "Output": "Row",
    "capabilities": "admin",
    "features": {"a": 1},
    "modes": "code",
    "idempotent": "perhaps",
    "transactional": None,
    "volatile": [],
    "open_world": 2,
    "returns_outside_text": "",
    "destination_params": [1],
    "plain_params": "note",
    "carries_requests": object(),
    "suspends": "later",
    "cacheable_s": NAN,
    "rate_limit": RateLimit("many", 60),  # type: ignore[arg-type]
    "timeout_s": float("inf"),
    "source": b"\xff",
    "do_not_call_in_templates": False,
    "title": 5,
    "schema": {"type": {1}},
    "parameters": None,
    "preview": None,
    "sentence": "Do it",
}
"""The attributes that make a tool invalid, by name; each tool has one of them and is left out."""

WRONG_PREVIEWS: dict[str, Any] = {
    "date": DAY,
    "decimal": Decimal(1),
    "nan": NAN,
    "list": [1],
    "text": "a preview",
    "number": 5,
    "targets": Preview("create", [3]),  # type: ignore[arg-type]
    "effect": Preview(None),  # type: ignore[arg-type]
    "version": Preview("create", (Target("1", "One", "latest"),)),  # type: ignore[arg-type]
    "object": Preview("create", (Target("1", "One", after={"it": object()}),)),
}
WRONG_SENTENCES: dict[str, Any] = {
    "date": DAY,
    "decimal": Decimal(1),
    "nan": NAN,
    "none": None,
    "list": ["Do it"],
}
WRONG_HOSTS: dict[str, Any] = {
    "text": "example.com",
    "numbers": [1],
    "date": DAY,
    "nan": NAN,
    "false": False,
}
WRONG_PARAMS: dict[str, Any] = {"none": None, "list": [1], "object": {"it": object()}, "text": "{}"}
ODD_PREVIEWS: dict[str, Any] = {
    "values": Preview(
        "create",
        (
            Target(
                UUID(int=1),  # type: ignore[arg-type]
                None,  # type: ignore[arg-type]
                after={"on": DAY, "sum": Decimal(1), "rate": NAN, "tags": {"b", "a"}},
            ),
        ),
    ),
    "fields": {"effect": "create", "targets": [{"id": 5, "label": "Five"}]},
    "none": None,
}
ODD_RESULTS: dict[str, Callable[[], Any]] = {
    "decimal": lambda: ToolResult.ok({"sum": Decimal("1.50")}),
    "date": lambda: ToolResult.ok({"on": DAY, "at": datetime(2026, 5, 4, tzinfo=UTC)}),
    "uuid": lambda: ToolResult.ok(UUID(int=5)),
    "set": lambda: ToolResult.ok({"tags": {"b", "a"}}),
    "keys": lambda: ToolResult.ok({DAY: 1, (1, 2): 2}),
    "nan": lambda: ToolResult.ok([1.0, NAN]),
    "model": Row,
    "models": lambda: [Row(), Row(id=8)],
    "dict": lambda: {"id": 5},
    "none": lambda: None,
    "cost": lambda: ToolResult.ok({}, cost=Decimal("0.25")),
    "summary": lambda: ToolResult(success=True, summary=None, markdown=5),  # type: ignore[arg-type]
}
UNREADABLE_RESULTS: dict[str, Callable[[], Any]] = {
    "object": object,
    "inside": lambda: ToolResult.ok({"id": 5, "it": object()}),
    "loop": _tie_knot,
    "bytes": lambda: ToolResult.ok(b"\xff\xfe"),
    "metadata": lambda: ToolResult.ok({}, session=object()),
    "huge": lambda: ToolResult.ok("x" * 8_000_001),
}
UNKNOWN_RESULTS: dict[str, Callable[[], Any]] = {
    "both": lambda: ToolResult(success=True, error=ResultError(ErrorCode.NOT_FOUND, "a", "a")),
    "neither": lambda: ToolResult(success=False),
    "unsure": lambda: ToolResult(success="yes"),  # type: ignore[arg-type]
    "iterator": lambda: iter([1]),
}


def make_tool(base: type[Tool], called: str, /, **members: Any) -> Tool:
    """Return a tool of a new class with these members."""
    made: type[Tool] = type(
        f"Wrong{called.title()}",
        (base,),
        {"__module__": __name__, "name": f"wrong.{called}", **members},
    )
    return made()


def _make_effects(values: dict[str, Any], kind: str, method: str) -> list[Tool]:
    return [
        make_tool(RightWrite, f"{kind}-{name}", **{method: _method(method, value)})
        for name, value in values.items()
    ]


def _method(name: str, value: Any) -> Callable[..., Any]:
    if name in ("preview", "sentence"):
        return lambda self, params, context: value
    return lambda self, params: value


def _make_results(values: dict[str, Callable[[], Any]]) -> list[Tool]:
    def make(name: str, build: Callable[[], Any]) -> Tool:
        def execute(self: Tool, params: Any, context: ToolContext) -> Any:
            ran.append(self.name)
            return build()

        return make_tool(RightWrite, f"result-{name}", execute=execute)

    return [make(name, build) for name, build in values.items()]


LEFT_OUT = [
    make_tool(Right, f"attribute-{name.lower().replace('_', '-')}", **{name: value})
    for name, value in WRONG_ATTRIBUTES.items()
]
REJECTED = [
    *_make_effects(WRONG_PREVIEWS, "preview", "preview"),
    *_make_effects(WRONG_SENTENCES, "sentence", "sentence"),
    *_make_effects(WRONG_PARAMS, "params", "check_params"),
    *[
        make_tool(Right, f"hosts-{name}", open_world=True, hosts=_method("hosts", value))
        for name, value in WRONG_HOSTS.items()
    ],
]
CARDED = _make_effects(ODD_PREVIEWS, "odd", "preview")
WRITTEN = _make_results(ODD_RESULTS)
UNREADABLE = _make_results(UNREADABLE_RESULTS)
UNKNOWN = _make_results(UNKNOWN_RESULTS)


class _Chain(Recipe):
    """A recipe whose step has invalid params."""

    name = "wrong.recipe"
    description = "Do it in steps."
    level = Level.READ
    Params = NoParams
    steps = (Step("right.read", lambda params, results: [DAY]),)  # type: ignore[arg-type, return-value]


READS = [
    make_tool(Right, "summary", running_summary=_method("running_summary", DAY)),
    make_tool(Right, "validate", validate=_method("validate", NAN)),
    make_tool(Right, "error", execute=lambda self, params, context: _raise_odd_error()),
    make_tool(Right, "start", start=lambda self: DAY),
    make_tool(
        Right,
        "question",
        suspends=True,
        execute=lambda self, params, context: Question(5, None),  # type: ignore[arg-type]
    ),
    make_tool(
        Right,
        "delegation",
        suspends=True,
        execute=lambda self, params, context: Delegation(None, NAN),  # type: ignore[arg-type]
    ),
    make_tool(
        Right,
        "progress",
        execute=lambda self, params, context: context.progress("half", DAY) or "Done",
    ),
    make_tool(
        Right,
        "session",
        execute=lambda self, params, context: context.session.update(at=object()) or "Done",
    ),
    make_tool(
        Right, "inner", execute=lambda self, params, context: context.call_tool("right.read", [DAY])
    ),
    _Chain(),
]
TOOLS = [Right, RightWrite, *LEFT_OUT, *REJECTED, *CARDED, *WRITTEN, *UNREADABLE, *UNKNOWN, *READS]
