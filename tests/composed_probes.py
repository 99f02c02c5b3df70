"""Test tools that call others, that are recipes, or that keep values in the run's session."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from pydantic import BaseModel

from tests.probes import reach
from tools.contract import Level, Recipe, Step, Tool, ToolContext, ToolResult


class Ask(Tool):
    """A read that calls another tool, waits at a gate if one is named, and returns the results."""

    name = "probe.composed"
    description = "Calls another tool."
    level = Level.READ
    volatile = True
    timeout_s = 20.0

    class Params(BaseModel):
        inner: str
        params: dict[str, Any] = {}
        times: int = 1
        gate: str = ""

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        results = [context.call_tool(params.inner, params.params) for _ in range(params.times)]
        if params.gate:
            reach(params.gate)
        return ToolResult.ok(
            [result.as_json() for result in results],
            "; ".join(result.summary for result in results),
        )


class TransactionalAsk(Ask):
    """`Ask` as a transactional write, which may not call other tools."""

    name = "probe.composedWrite"
    level = Level.WRITE
    transactional = True


class Remember(Tool):
    """Adds a value to the run's session, or removes a key from it; returns the session as it was
    before."""

    name = "probe.remember"
    description = "Remembers."
    level = Level.READ
    volatile = True

    class Params(BaseModel):
        key: str
        value: Any = None
        gate: str = ""

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        before = deepcopy(context.session)
        if params.value == "forget":
            context.session.pop(params.key, None)
        elif params.value == "a set":
            context.session[params.key] = {1, 2}
        else:
            context.session.setdefault(params.key, []).append(params.value)
        if params.gate:
            reach(params.gate)
        return ToolResult.ok(before, f"Remembered {params.key}")


class Onboard(Recipe):
    """Looks a record up, renames it and looks it up again."""

    name = "probe.recipe"
    description = "Renames a record after a look."

    class Params(BaseModel):
        record_id: int
        to: str
        is_broken: bool = False

    @staticmethod
    def _look(params: Any, results: Sequence[ToolResult]) -> dict[str, Any]:
        return {"record_id": params.record_id}

    @staticmethod
    def _rename(params: Any, results: Sequence[ToolResult]) -> dict[str, Any]:
        if params.is_broken:
            raise RuntimeError("password=hunter2")
        return {
            "record_id": params.record_id,
            "to": f"{params.to} (was {results[0].data['record']['name']})",
        }

    def result(self, params: Params, results: Sequence[ToolResult]) -> ToolResult:
        return ToolResult.ok(
            {"name": results[-1].data["record"]["name"]}, f"{len(results)} steps done"
        )


class Relay(Recipe):
    """Passes a gate, renames a record and passes another gate; it can be paused during and between
    steps."""

    name = "probe.relay"
    description = "Renames a record between two gates."

    class Params(BaseModel):
        record_id: int

    @staticmethod
    def _rename(params: Any, results: Sequence[ToolResult]) -> dict[str, Any]:
        reach("between first and second")
        return {"record_id": params.record_id, "to": "New", "gate": "second"}

    @staticmethod
    def _pass(params: Any, results: Sequence[ToolResult]) -> dict[str, Any]:
        reach("between second and third")
        return {"name": "third"}


class Slow(Ask):
    """Like `Ask`, with a short timeout."""

    name = "probe.composedBriefly"
    timeout_s = 0.3


class Endless(Recipe):
    """A recipe that contains itself."""

    name = "probe.endless"
    description = "Never ends."
    steps = (Step("probe.endless", lambda params, results: {}),)


class InvalidStep(Recipe):
    """A recipe with a step whose params are not JSON."""

    name = "probe.spoilt"
    description = "Cannot be written."
    steps = (Step("probe.sleep", lambda params, results: {"ms": {1, 2}}),)


class Nested(Recipe):
    """A recipe whose only step is a recipe."""

    name = "probe.nested"
    description = "Renames a record, one level deeper."

    class Params(BaseModel):
        record_id: int

    @staticmethod
    def _onboard(params: Any, results: Sequence[ToolResult]) -> dict[str, Any]:
        return {"record_id": params.record_id, "to": "New"}


Nested.steps = (Step("probe.recipe", Nested._onboard),)
Onboard.steps = (
    Step("data.getRecordDetail", Onboard._look),
    Step("probe.rename", Onboard._rename),
    Step("data.getRecordDetail", Onboard._look),
)
Relay.steps = (
    Step("probe.gate", lambda params, results: {"name": "first"}),
    Step("probe.rename", Relay._rename),
    Step("probe.gate", Relay._pass),
)
PROBES = (Ask, TransactionalAsk, Remember, Onboard, Relay, Nested, Slow, Endless, InvalidStep)
