"""Tools of connected sources with results that a test sets, and helpers for conditions on where
values come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from typing_extensions import override

from agents.runs.models import Run
from tests.standing_grants.granting import allow, answered, is_waiting
from tests.workshop import Workshop, asking, call
from tools.contract import Level, Preview, ToolContext, ToolResult
from tools.sources.external_tool import ExternalTool
from tools.toolbox.conditions import Condition, Rule
from tools.toolbox.toolbox import Toolbox

Reply = Callable[[dict[str, Any]], Any]
"""Returns the data of a result for the params of a call; a ToolResult is returned as it is."""
TEXT = {"type": "string"}


class SourceTool(ExternalTool):
    """A tool of a connected source that replies as the test says."""

    def __init__(
        self,
        name: str,
        level: Level,
        schema: dict[str, Any],
        reply: Reply,
        output: Mapping[str, Any] | None = None,
    ) -> None:
        self.name, self.level = name, level
        self.source = self.author = name.partition(".")[0]
        self.description = "A tool of a connected source."
        self.__dict__.update(schema=schema, output=output, reply=reply)

    @property
    @override
    def output_schema(self) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = self.__dict__["output"]
        return found

    @override
    def sentence(self, params: dict[str, Any], preview: Preview) -> str:
        return f"Use {self.name}"

    def execute(self, params: dict[str, Any], context: ToolContext) -> ToolResult:
        data = self.__dict__["reply"](params)
        return data if isinstance(data, ToolResult) else ToolResult.ok(data, "Done")


def describe_object(*required: str, **properties: Any) -> dict[str, Any]:
    """Describe an object that has only these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def comes_from(
    param: str,
    tool: str,
    path: str,
    *where: Condition,
    also: tuple[Any, ...] = (),
    only: bool = False,
) -> Condition:
    stored = [{"param": each.param, "rule": each.rule, "value": each.value} for each in where]
    sources = [{"tool": tool, "path": path, "where": stored, "only": only}]
    return Condition(param, Rule.COMES_FROM, {"sources": sources, "also": list(also)})


def typed(param: str, *also: Any) -> Condition:
    return Condition(param, Rule.TYPED, {"also": list(also)})


def each(param: str, condition: Condition, *also: Any) -> Condition:
    """Build the condition that each entry of the param meets this one."""
    value = {"rule": condition.rule, "value": condition.value, "also": list(also)}
    return Condition(param, Rule.EACH, value)


def is_approved(run: Run) -> bool:
    """Return True if a standing grant approved the run's last call; otherwise a person is asked."""
    assert bool(answered(run)) is not is_waiting(run)
    return bool(answered(run))


class Shop:
    """A source with customers and orders, and the employee who works with it."""

    def __init__(self, workshop: Workshop, toolbox: Toolbox) -> None:
        self.workshop = workshop
        self.results: dict[str, Any] = {}
        mails = {"type": "array", "items": TEXT}
        orders = {"type": "array", "items": describe_object(id=TEXT)}
        order = {"id": TEXT, "total": {"type": "number"}, "note": TEXT, "mails": mails}
        by_id = describe_object("id", id=TEXT)
        cancel = {
            "order": TEXT,
            "reason": TEXT,
            "amount": {"type": "number"},
            "items": {"type": "array"},
            "payments": {"type": "array", "items": describe_object(amount={"type": "number"})},
            "orders": {"type": "array", "items": describe_object(id=TEXT)},
            "copy": {"type": ["string", "null"]},
        }
        tools: list[tuple[str, Level, dict[str, Any], dict[str, Any]]] = [
            (
                "shop.getCustomer",
                Level.READ,
                describe_object("name", name=TEXT),
                {"id": TEXT, "orders": orders},
            ),
            ("shop.getOrder", Level.READ, by_id, order),
            ("shop.readMail", Level.READ, by_id, {"id": TEXT, "text": TEXT}),
            ("other.getOrder", Level.READ, by_id, order),
            ("shop.reserve", Level.WRITE, by_id, order),
            ("shop.saveDraft", Level.DRAFT, by_id, order),
            ("shop.cancel", Level.WRITE, describe_object("order", **cancel), {}),
        ]
        for name, level, schema, output in tools:
            tool = SourceTool(name, level, schema, self._reply(name), describe_object(**output))
            allow(workshop, toolbox, tool)

    def _reply(self, name: str) -> Reply:
        return lambda params: self.results.get(f"{name} {next(iter(params.values()), '')}", {})

    def answer(self, tool: str, key: str, data: Any) -> dict[str, Any]:
        """Set the result for this value of the tool's first param; return the call."""
        self.results[f"{tool} {key}"] = data
        param = "name" if tool == "shop.getCustomer" else "id"
        return call(tool, **{param: key})

    def replace(self, name: str, toolbox: Toolbox) -> None:
        """Replace the tool by one of the same name with another definition."""
        before = toolbox.get_tool(name)
        assert isinstance(before, SourceTool)
        toolbox.unregister(before.id)
        schema = {**before.schema, "description": "Another"}
        toolbox.register(SourceTool(name, before.level, schema, self._reply(name)))

    def work(self, *passes: Any, task: str = "Cancel it", is_typed: bool = True) -> Run:
        """Let the employee request these calls, one pass for each; a person types the task."""
        scripted = [asking(*each) if isinstance(each, list) else asking(each) for each in passes]
        self.workshop.play(*scripted)
        return self.workshop.work(task, is_typed=is_typed)
