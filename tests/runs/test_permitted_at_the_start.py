"""Calls obey the permissions at the time they are recorded or started, even if these changed while
the model responded or during a preview."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from typing_extensions import override

from agents.accounts.models import Organization
from agents.approvals.withheld_bulks import withhold
from agents.employees.models import Employee, Grant, ToolRule
from agents.platform.refusals import Conflict
from agents.runs import stops
from agents.runs.engine.context import load_context, load_grants
from agents.runs.engine.judgment import MAX_ROUNDS
from agents.runs.models import Approval, ApprovalStatus, CallStatus, RunStatus
from tests import composed_probes
from tests.features import feature
from tests.model_server import Call, ModelServer, Response
from tests.probes import Effect, Named
from tests.recorder import Recorder
from tests.workshop import Workshop, again, asking, call, calls, data_of, error_code, statuses
from tools.contract import Level, Recipe, Step, Tool, ToolContext, ToolResult
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)


class Previewed(Effect):
    """A write that runs `meanwhile` during its first preview, or during every preview if `always`
    is set."""

    name = "probe.previewed"

    def __init__(self, meanwhile: Callable[[], object], always: bool = False) -> None:
        self.meanwhile, self.always, self.previewed = meanwhile, always, list[str]()

    @override
    def preview(self, params: Named, context: ToolContext) -> None:
        self.previewed.append(params.name)
        if self.always or len(self.previewed) == 1:
            self.meanwhile()


class Judged(Tool):
    """A read that runs `meanwhile` when it is judged for the first time."""

    name = "probe.judged"
    description = "Is judged."
    level = Level.READ
    volatile = True
    Params = Named

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.meanwhile, self.in_transactions = meanwhile, list[bool]()

    @override
    def validate(self, params: Named) -> None:
        self.in_transactions.append(connection.in_atomic_block)
        if len(self.in_transactions) == 1:
            self.meanwhile()

    def execute(self, params: Named, context: ToolContext) -> ToolResult:
        return ToolResult.ok({}, f"Judged {params.name}")


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


@pytest.mark.parametrize("removed", ["nothing", "the capability", "the feature", "the grant"])
def test_a_call_is_rejected_if_its_permissions_are_removed_while_the_model_responds(
    workshop: Workshop, toolbox: Toolbox, model: ModelServer, removed: str
) -> None:
    allow(workshop, toolbox, Guarded())

    def answer(body: dict[str, Any]) -> Response:
        if body["messages"][-1]["role"] == "tool":
            return Response(text="Done.")
        if removed == "the capability":
            Employee.objects.update(capabilities=[])
        elif removed == "the feature":
            Organization.objects.update(plan_features=[])
        elif removed == "the grant":
            Grant.objects.filter(tool="probe.guarded").delete()
        return Response(calls=(Call("probe.guarded", {"name": "a"}),))

    model.respond_with(answer)
    (row,) = calls(workshop.work())
    if removed == "nothing":
        assert (row.status, row.attempts) == (CallStatus.SUCCEEDED, 1)
    else:
        assert (row.status, row.attempts, error_code(row)) == (
            CallStatus.REJECTED,
            0,
            "NOT_PERMITTED",
        )


def test_load_grants_returns_the_current_grants_with_the_given_mode(workshop: Workshop) -> None:
    employee, tool = workshop.employee.pk, "data.searchRecords"
    assert tool in load_grants(employee, "general").tools
    assert load_grants(employee, "research").mode == "research"
    Grant.objects.filter(employee=employee, tool=tool).update(level=Level.WRITE)
    assert load_grants(employee, "general").raised == {tool: Level.WRITE}
    Grant.objects.filter(employee=employee, tool=tool).delete()
    assert tool not in load_grants(employee, "general").tools


def test_a_level_raised_while_the_model_responds_requires_a_card(
    workshop: Workshop, model: ModelServer
) -> None:
    def answer(body: dict[str, Any]) -> Response:
        workshop.raise_for_all("probe.sleep", Level.WRITE)
        return Response(calls=(Call("probe.sleep", {"ms": 0}),))

    model.respond_with(answer)
    run = workshop.work()
    assert (run.status, statuses(run)) == (RunStatus.WAITING, [CallStatus.AWAITING_APPROVAL])
    assert workshop.card(run).level == Level.WRITE


def test_a_tool_stopped_while_another_card_is_previewed_does_not_start(
    workshop: Workshop, toolbox: Toolbox, recorder: Recorder
) -> None:
    write = Previewed(lambda: stops.stop_tool(workshop.operator, "probe.gate"))
    allow(workshop, toolbox, write)
    workshop.play(
        asking(
            call("probe.previewed", name="a"),
            call("probe.gate", name="b"),
            call("probe.sleep", ms=0),
        )
    )
    run = workshop.work()
    assert statuses(run) == [
        CallStatus.AWAITING_APPROVAL,
        CallStatus.REJECTED,
        CallStatus.SUCCEEDED,
    ]
    assert error_code(calls(run)[1]) == "TOOL_DISABLED"
    assert (write.previewed, recorder.arrivals["b"]) == (["a"], 0)


def test_a_write_revoked_during_its_own_preview_does_not_get_a_card(
    workshop: Workshop, toolbox: Toolbox
) -> None:
    allow(
        workshop, toolbox, Previewed(lambda: Grant.objects.filter(tool="probe.previewed").delete())
    )
    workshop.play(asking(call("probe.previewed", name="a")))
    run = workshop.work()
    assert (run.status, statuses(run), workshop.cards(run)) == (
        RunStatus.SUCCEEDED,
        [CallStatus.REJECTED],
        [],
    )


@feature(
    "The gate",
    "A change of permissions repeats only the previews it affects",
    "agents/runs/engine/passes.py",
)
def test_only_a_card_whose_verdict_changed_is_previewed_again(
    workshop: Workshop, toolbox: Toolbox
) -> None:
    write = Previewed(lambda: workshop.raise_for_all("probe.effect", Level.DESTRUCTIVE))
    allow(workshop, toolbox, write)
    workshop.play(
        asking(
            *[call("probe.previewed", name=name) for name in "ab"], call("probe.effect", name="c")
        )
    )
    run = workshop.work()
    assert [card.level for card in workshop.cards(run)] == ["write", "write", "destructive"]
    assert write.previewed == ["a", "b"]


def test_a_write_is_not_previewed_again_once_its_run_is_cancelled(
    workshop: Workshop, toolbox: Toolbox
) -> None:
    def change_and_cancel() -> None:
        workshop.raise_for_all("probe.previewed", Level.DESTRUCTIVE)
        workshop.cancel(run)

    write = Previewed(change_and_cancel)
    allow(workshop, toolbox, write)
    workshop.play(asking(call("probe.previewed", name="a"), call("probe.sleep", ms=0)))
    run = workshop.submit()
    run = workshop.drive(run)
    assert (run.status, calls(run), write.previewed) == (RunStatus.CANCELLED, [], ["a"])


def test_a_write_is_not_previewed_again_once_its_employee_is_stopped(
    workshop: Workshop, toolbox: Toolbox
) -> None:
    def change_and_stop() -> None:
        workshop.raise_for_all("probe.previewed", Level.DESTRUCTIVE)
        stops.stop_employee(workshop.operator, workshop.employee.pk)

    write = Previewed(change_and_stop)
    allow(workshop, toolbox, write)
    workshop.play(
        asking(
            call("probe.previewed", name="a"),
            call("probe.doom", name="b"),
            call("probe.sleep", ms=0),
        )
    )
    run = workshop.work()
    assert statuses(run) == [CallStatus.REJECTED, CallStatus.AWAITING_APPROVAL, CallStatus.READY]
    assert (error_code(calls(run)[0]), write.previewed) == ("LIMIT_EXCEEDED", ["a"])


def test_a_call_whose_permissions_change_in_every_preview_is_refused(
    workshop: Workshop, toolbox: Toolbox
) -> None:
    def flip() -> None:
        if not ToolRule.objects.filter(tool="probe.previewed").delete()[0]:
            workshop.raise_for_all("probe.previewed", Level.DESTRUCTIVE)

    write = Previewed(flip, always=True)
    allow(workshop, toolbox, write)
    workshop.play(asking(call("probe.previewed", name="a"), call("probe.sleep", ms=0)))
    run = workshop.work()
    assert (run.status, statuses(run)) == (
        RunStatus.SUCCEEDED,
        [CallStatus.REJECTED, CallStatus.SUCCEEDED],
    )
    assert "changed while this call was prepared" in calls(run)[0].content
    assert write.previewed == ["a"] * MAX_ROUNDS


def test_rules_differ_if_one_toolbox_has_an_additional_tool(workshop: Workshop) -> None:
    place = load_context(workshop.submit().pk)
    wider = replace(place, toolbox=place.toolbox.with_hosts(frozenset()))
    wider.toolbox.register(Judged())
    assert (wider.has_same_rules(wider), wider.has_same_rules(place)) == (True, False)


def test_a_response_is_judged_once_if_its_permissions_do_not_change(
    workshop: Workshop, toolbox: Toolbox
) -> None:
    read = Judged()
    allow(workshop, toolbox, read)
    workshop.play(asking(call("probe.judged", name="a"), call("probe.effect", name="b")))
    assert statuses(workshop.work()) == [CallStatus.SUCCEEDED, CallStatus.AWAITING_APPROVAL]
    assert read.in_transactions == [False]


class TestAStepOfARecipe:
    @pytest.fixture
    def recipe(self, workshop: Workshop, toolbox: Toolbox) -> type[Recipe]:
        """A recipe whose step each test replaces."""

        class Guided(Recipe):
            name = "probe.guided"
            description = "Is guided."
            steps = (Step("probe.judged", lambda params, results: {"name": "a"}),)

        allow(workshop, toolbox, Guided())
        workshop.play(asking(call("probe.guided")))
        return Guided

    @feature(
        "The gate",
        "A recipe's step gets the card that is right by then",
        "agents/runs/engine/suspension.py",
    )
    def test_stopped_during_its_preview_does_not_get_a_card(
        self, workshop: Workshop, toolbox: Toolbox, recipe: type[Recipe]
    ) -> None:
        write = Previewed(lambda: stops.stop_tool(workshop.operator, "probe.previewed"))
        allow(workshop, toolbox, write)
        recipe.steps = (Step("probe.previewed", lambda params, results: {"name": "a"}),)
        run = workshop.work()
        assert (run.status, statuses(run)) == (
            RunStatus.SUCCEEDED,
            [CallStatus.FAILED, CallStatus.REJECTED],
        )
        assert (error_code(calls(run)[1]), workshop.cards(run)) == ("TOOL_DISABLED", [])

    def test_is_not_recorded_if_its_recipe_is_stopped_while_the_step_is_judged(
        self, workshop: Workshop, toolbox: Toolbox, recipe: type[Recipe]
    ) -> None:
        allow(workshop, toolbox, Judged(lambda: stops.stop_tool(workshop.operator, "probe.guided")))
        recipe.steps = (Step("probe.judged", lambda params, results: {"name": "a"}),)
        run = workshop.work()
        assert (run.status, statuses(run)) == (RunStatus.SUCCEEDED, [CallStatus.FAILED])
        assert error_code(calls(run)[0]) == "TOOL_DISABLED"

    def test_whose_level_is_raised_while_it_is_judged_waits_for_its_card(
        self, workshop: Workshop, toolbox: Toolbox, recipe: type[Recipe]
    ) -> None:
        allow(
            workshop, toolbox, Judged(lambda: workshop.raise_for_all("probe.judged", Level.WRITE))
        )
        recipe.steps = (Step("probe.judged", lambda params, results: {"name": "a"}),)
        run = workshop.work()
        assert statuses(run) == [CallStatus.SUSPENDED, CallStatus.AWAITING_APPROVAL]
        card = workshop.card(run)
        assert card.level == Level.WRITE
        workshop.approve(card)
        assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED] * 2

    def test_keeps_its_preview_if_other_permissions_change(
        self, workshop: Workshop, toolbox: Toolbox, recipe: type[Recipe]
    ) -> None:
        write = Previewed(lambda: workshop.raise_for_all("probe.effect", Level.DESTRUCTIVE))
        allow(workshop, toolbox, write)
        recipe.steps = (Step("probe.previewed", lambda params, results: {"name": "a"}),)
        assert statuses(workshop.work()) == [CallStatus.SUSPENDED, CallStatus.AWAITING_APPROVAL]
        assert write.previewed == ["a"]

    def test_whose_permissions_change_in_every_preview_is_refused(
        self, workshop: Workshop, toolbox: Toolbox, recipe: type[Recipe]
    ) -> None:
        def flip() -> None:
            if not ToolRule.objects.filter(tool="probe.previewed").delete()[0]:
                workshop.raise_for_all("probe.previewed", Level.DESTRUCTIVE)

        write = Previewed(flip, always=True)
        allow(workshop, toolbox, write)
        recipe.steps = (Step("probe.previewed", lambda params, results: {"name": "a"}),)
        assert statuses(workshop.work()) == [CallStatus.FAILED, CallStatus.REJECTED]
        assert write.previewed == ["a"] * MAX_ROUNDS


class TestAnInnerCall:
    @pytest.fixture(autouse=True)
    def _composing(self, workshop: Workshop) -> None:
        Grant.objects.create(employee=workshop.employee, tool=composed_probes.Ask.name)
        workshop.play(
            asking(call(composed_probes.Ask.name, inner="probe.judged", params={"name": "a"}))
        )

    def test_is_judged_once_and_outside_transactions(
        self, workshop: Workshop, toolbox: Toolbox
    ) -> None:
        inner = Judged()
        allow(workshop, toolbox, inner)
        assert statuses(workshop.work()) == [CallStatus.SUCCEEDED] * 2
        assert inner.in_transactions == [False]

    def test_stopped_while_it_is_judged_is_refused(
        self, workshop: Workshop, toolbox: Toolbox
    ) -> None:
        inner = Judged(lambda: stops.stop_tool(workshop.operator, "probe.judged"))
        allow(workshop, toolbox, inner)
        (parent,) = calls(workshop.work())
        assert data_of(parent)[0]["error"]["code"] == "TOOL_DISABLED"
        assert inner.in_transactions == [False]


@pytest.fixture
def write(workshop: Workshop, toolbox: Toolbox) -> Previewed:
    """A write that the employee requests."""
    write = Previewed(lambda: None)
    allow(workshop, toolbox, write)
    workshop.play(asking(call("probe.previewed", name="a")))
    return write


class TestAnApprovedWrite:
    """A change of permissions between the last preview and the start of an approved write still
    applies."""

    @pytest.fixture
    def card(self, workshop: Workshop, write: Previewed) -> Approval:
        """The write's approval; the next preview is the last one before the start."""
        write.always = True
        return workshop.approve(workshop.card(workshop.work()))

    def test_does_not_start_once_its_employee_is_stopped(
        self, workshop: Workshop, write: Previewed, card: Approval, recorder: Recorder
    ) -> None:
        write.meanwhile = lambda: stops.stop_employee(workshop.operator, workshop.employee.pk)
        run = workshop.drive(card.run)
        card.refresh_from_db()
        assert (run.status, statuses(run), card.status) == (
            RunStatus.QUEUED,
            ["approved"],
            ApprovalStatus.APPROVED,
        )
        assert not recorder.effects

    def test_does_not_start_once_its_run_is_cancelled(
        self, workshop: Workshop, write: Previewed, card: Approval, recorder: Recorder
    ) -> None:
        write.meanwhile = lambda: workshop.cancel(card.run)
        run = workshop.drive(card.run)
        assert (run.status, statuses(run)) == (RunStatus.CANCELLED, [CallStatus.CANCELLED])
        assert not recorder.effects

    def test_does_not_start_once_its_approval_was_undone(
        self, workshop: Workshop, write: Previewed, card: Approval, recorder: Recorder
    ) -> None:
        def undo() -> None:
            write.always = False  # undoing computes a preview too
            workshop.undo(card)

        write.meanwhile = undo
        run = workshop.drive(card.run)
        assert (run.status, statuses(run)) == (RunStatus.WAITING, [CallStatus.AWAITING_APPROVAL])
        assert "undid the approval" in workshop.card(run).why
        assert not recorder.effects

    def test_does_not_start_once_its_bulk_was_undone(
        self, workshop: Workshop, write: Previewed, card: Approval, recorder: Recorder
    ) -> None:
        bulk_id = uuid4()
        Approval.objects.filter(pk=card.pk).update(bulk_id=bulk_id)
        write.meanwhile = lambda: withhold(workshop.approver, bulk_id)
        run = workshop.drive(card.run)
        assert statuses(run) == [CallStatus.APPROVED]
        assert not recorder.effects

    def test_is_started_only_by_the_driver_of_its_own_run(
        self, workshop: Workshop, card: Approval, recorder: Recorder
    ) -> None:
        older, own, newer = [card.run, *(workshop.work() for _ in range(2))]
        for run in (own, newer):
            workshop.approve(workshop.card(run))
        assert statuses(workshop.drive(own)) == [CallStatus.SUCCEEDED]
        assert statuses(older) == statuses(newer) == [CallStatus.APPROVED]


class TestAnEdit:
    @feature(
        "The gate",
        "An edit that is no longer permitted changes nothing",
        "agents/approvals/decisions.py",
    )
    @pytest.mark.parametrize("change", ["stopped", "raised", "revoked"])
    def test_that_is_no_longer_permitted_leaves_the_card_open(
        self, workshop: Workshop, write: Previewed, change: str
    ) -> None:
        card = workshop.card(workshop.work())
        write.always = True
        write.meanwhile = {
            "stopped": lambda: stops.stop_tool(workshop.operator, "probe.previewed"),
            "raised": lambda: workshop.raise_for_all("probe.previewed", Level.DESTRUCTIVE),
            "revoked": lambda: Grant.objects.filter(tool="probe.previewed").delete(),
        }[change]
        with pytest.raises(Conflict, match="permissions have changed"):
            workshop.edit(card, {"name": "b"})
        card.refresh_from_db()
        assert (card.status, calls(again(card.run))[0].params) == (
            ApprovalStatus.PENDING,
            {"name": "a"},
        )

    def test_ignores_changes_to_other_permissions(
        self, workshop: Workshop, write: Previewed
    ) -> None:
        card = workshop.card(workshop.work())
        write.always, write.meanwhile = (
            True,
            lambda: stops.stop_tool(workshop.operator, "probe.effect"),
        )
        assert workshop.edit(card, {"name": "b"}).level == Level.WRITE
