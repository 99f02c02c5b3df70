"""What is taken away while the model answers or a card is previewed holds for every call of that answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agents import stops
from agents.models import CallStatus, Employee, Grant, Organization, RunStatus
from tests.engine.workshop import Workshop, asking, call, calls, error_code, statuses
from tests.model_server import Answer, Call, ModelServer
from tests.probes import Effect, Named
from tests.recorder import Recorder
from tools.contract import Level, Tool, ToolContext, ToolResult
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)


class Previewed(Effect):
    """A write, while whose card is being made something happens."""

    name = "probe.previewed"

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self.meanwhile, self.previews = meanwhile, 0

    def preview(self, params: Any, context: ToolContext) -> None:
        self.previews += 1
        if self.previews == 1:
            self.meanwhile()


class Guarded(Tool):
    """A read that demands a capability and a feature."""

    name = "probe.guarded"
    description = "Is guarded."
    level = Level.READ
    capabilities = frozenset({"reading"})
    features = frozenset({"reports"})
    Params = Named

    def execute(self, params: Named, context: ToolContext) -> ToolResult:
        return ToolResult.ok({}, "Read")


def allow(workshop: Workshop, toolbox: Toolbox, tool: Tool) -> None:
    toolbox.register(tool)
    Grant.objects.create(employee=workshop.employee, tool=tool.name)
    Employee.objects.filter(pk=workshop.employee.pk).update(capabilities=["reading"])
    Organization.objects.filter(pk=workshop.organization.pk).update(plan_features=["reports"])


@pytest.mark.parametrize("taken", ["nothing", "the capability", "the feature", "the grant"])
def test_while_the_model_answers(workshop: Workshop, toolbox: Toolbox, model: ModelServer, taken: str) -> None:
    allow(workshop, toolbox, Guarded())

    def answer(body: dict[str, Any]) -> Answer:
        if body["messages"][-1]["role"] == "tool":
            return Answer(text="Done.")
        if taken == "the capability":
            Employee.objects.update(capabilities=[])
        elif taken == "the feature":
            Organization.objects.update(plan_features=[])
        elif taken == "the grant":
            Grant.objects.filter(tool="probe.guarded").delete()
        return Answer(calls=(Call("probe.guarded", {"name": "a"}),))

    model.answer_with(answer)
    (row,) = calls(workshop.work())
    if taken == "nothing":
        assert (row.status, row.attempts) == (CallStatus.SUCCEEDED, 1)
    else:
        assert (row.status, row.attempts, error_code(row)) == (CallStatus.REJECTED, 0, "NOT_PERMITTED")


def test_a_level_raised_while_the_model_answers_asks_for_a_card(workshop: Workshop, model: ModelServer) -> None:
    def answer(body: dict[str, Any]) -> Answer:
        workshop.raise_for_all("probe.sleep", Level.WRITE)
        return Answer(calls=(Call("probe.sleep", {"ms": 0}),))

    model.answer_with(answer)
    run = workshop.work()
    assert (run.status, statuses(run)) == (RunStatus.WAITING, [CallStatus.AWAITING_APPROVAL])
    assert workshop.card(run).level == Level.WRITE


def test_a_tool_stopped_while_a_card_is_previewed_does_not_start_beside_it(
    workshop: Workshop, toolbox: Toolbox, recorder: Recorder
) -> None:
    write = Previewed(lambda: stops.stop_tool(workshop.operator, "probe.gate"))
    allow(workshop, toolbox, write)
    workshop.play(asking(call("probe.previewed", name="a"), call("probe.gate", name="b"), call("probe.sleep", ms=0)))
    run = workshop.work()
    assert statuses(run) == [CallStatus.AWAITING_APPROVAL, CallStatus.REJECTED, CallStatus.SUCCEEDED]
    assert error_code(calls(run)[1]) == "TOOL_DISABLED"
    assert (write.previews, recorder.waiting["b"]) == (2, 0)


def test_a_write_that_is_taken_away_while_its_own_card_is_previewed_gets_none(
    workshop: Workshop, toolbox: Toolbox
) -> None:
    allow(workshop, toolbox, Previewed(lambda: Grant.objects.filter(tool="probe.previewed").delete()))
    workshop.play(asking(call("probe.previewed", name="a")))
    run = workshop.work()
    assert (run.status, statuses(run), workshop.cards(run)) == (RunStatus.SUCCEEDED, [CallStatus.REJECTED], [])
