"""The judgment at the lock: a call starts only as it was judged, shown and approved, whatever
changes before it starts.

Each condition has a control: a similar change that must not stop the call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models.functions import Now
from pydantic import BaseModel
from typing_extensions import override

from agents.approvals import current_calls
from agents.approvals.current_calls import replace_unstarted_card
from agents.approvals.withheld_bulks import withhold
from agents.employees.models import Employee, Grant
from agents.gateway.requests import ToolRequest, record_request
from agents.platform.refusals import Conflict
from agents.runs import stops
from agents.runs.engine.cards import compute_effect_again
from agents.runs.models import Approval, ApprovalStatus, CallStatus, Run, RunStatus
from tests import composed_probes
from tests.gateway.conftest import make_key
from tests.probes import Effect, Named
from tests.recorder import Recorder
from tests.workshop import Workshop, again, asking, call, calls, data_of, error_code, statuses
from tools.contract import Level, Preview, Recipe, Step, Target, Tool, ToolContext, ToolResult
from tools.toolbox.conditions import Condition, Otherwise, Rule
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)

OWN, OTHER, CHECKED = "probe.watched", "probe.announce", "probe.checked"
SLEEP, CLOCK = "probe.sleep", "probe.clock"
MATTERS = pytest.mark.parametrize("matters", [True, False], ids=["changed", "control"])
Act = Callable[[], object]


class Watched(Effect):
    """A write that runs one of the functions in `acts` at each preview, and records whether a
    transaction was open then."""

    name = OWN

    def __init__(self) -> None:
        self.acts: list[Act] = []
        self.state = "old"
        self.previews = 0
        self.was_locked = False

    @override
    def preview(self, params: Named, context: ToolContext) -> Preview:
        self.previews += 1
        self.was_locked |= connection.in_atomic_block
        if self.acts:
            self.acts.pop()()
        return Preview(
            "change",
            (Target("1", "The thing", before={"state": self.state}, after={"state": "new"}),),
        )


class Checked(Tool):
    """A read that runs the functions in `acts` while it is judged, after its earlier calls have
    been counted."""

    name = "probe.checked"
    description = "Is checked."
    level = Level.READ
    volatile = True
    open_world = True

    class Params(BaseModel):
        pass

    def __init__(self) -> None:
        self.acts: list[Act] = []

    @override
    def hosts(self, params: Any) -> frozenset[str]:
        if self.acts:
            self.acts.pop()()
        return frozenset()

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return ToolResult.ok()


class Guided(Recipe):
    """A recipe with one step, the watched write."""

    name = "probe.guidedByOne"
    description = "Guides to one step."
    steps = (Step(OWN, lambda params, results: {"name": "a"}),)


@dataclass
class Scene:
    """An employee that calls the watched write, and may use every tool of these tests."""

    workshop: Workshop
    toolbox: Toolbox
    tool: Watched
    inner: Checked
    recorder: Recorder

    def limit(self, tool: str, otherwise: Otherwise = Otherwise.ASK) -> None:
        """Let the employee call the tool only once an hour."""
        once = Condition("", Rule.CALL_COUNT, {"most": 1, "period": "hour"}, otherwise)
        Grant.objects.filter(tool=tool).update(conditions=[once.as_json()])

    def ask(self, *more: dict[str, Any], meanwhile: Act | None = None) -> Run:
        """Let the employee request the write and further calls; run `meanwhile` while its card is
        previewed."""
        self.tool.acts = [meanwhile] if meanwhile else []
        self.workshop.play(asking(call(OWN, name="a"), *more))
        return self.workshop.work()

    def approve(self, run: Run) -> Approval:
        return self.workshop.approve(self.workshop.card(run))

    def start(self, run: Run, meanwhile: Act | None = None) -> Run:
        """Drive the run of an approved call, and run `meanwhile` between its first judgment and the
        lock."""
        self.tool.acts = [meanwhile] if meanwhile else []
        return self.workshop.drive(run)

    def ask_and_start(self, meanwhile: Act | None = None) -> Run:
        run = self.ask()
        self.approve(run)
        return self.start(run, meanwhile)

    def work_beside(self, *asked: dict[str, Any]) -> Run:
        """Let another run of the employee make these calls."""
        self.workshop.play(asking(*asked))
        return self.workshop.work()

    def assert_started(self, run: Run) -> None:
        assert statuses(run) == [CallStatus.SUCCEEDED]
        assert len(self.recorder.effects) == 1

    def assert_asked_again(self, run: Run, why: str) -> None:
        """Check that the call gets a new card with a reason, and starts once that card is
        approved."""
        assert statuses(run) == [CallStatus.AWAITING_APPROVAL]
        assert not self.recorder.effects
        assert why in self.workshop.card(run).why
        self.approve(run)
        self.assert_started(self.start(run))


@pytest.fixture
def scene(workshop: Workshop, toolbox: Toolbox, recorder: Recorder) -> Scene:
    watched, checked = Watched(), Checked()
    for tool in (watched, checked, Guided()):
        toolbox.register(tool)
    names = (OWN, CHECKED, Guided.name, composed_probes.Ask.name)
    Grant.objects.bulk_create([Grant(employee=workshop.employee, tool=name) for name in names])
    return Scene(workshop, toolbox, watched, checked, recorder)


class TestTheJudgmentAtTheLock:
    """Tests of approved calls come first, then of calls that are not stored yet, then of
    refusals."""

    @MATTERS
    def test_asks_again_about_a_call_with_a_raised_level(self, scene: Scene, matters: bool) -> None:
        tool = OWN if matters else OTHER
        run = scene.ask_and_start(lambda: scene.workshop.raise_for_all(tool, Level.DESTRUCTIVE))
        if matters:
            assert scene.workshop.card(run).level == Level.DESTRUCTIVE
            scene.assert_asked_again(run, "The tool or its level changed")
        else:
            scene.assert_started(run)

    @MATTERS
    def test_rejects_a_call_that_the_current_rules_forbid(
        self, scene: Scene, matters: bool
    ) -> None:
        run = scene.ask_and_start(
            lambda: stops.stop_tool(scene.workshop.operator, OWN if matters else OTHER)
        )
        if matters:
            assert (statuses(run), error_code(calls(run)[0])) == (
                [CallStatus.REJECTED],
                "TOOL_DISABLED",
            )
            assert not scene.recorder.effects
        else:
            scene.assert_started(run)

    @MATTERS
    def test_asks_again_about_a_tool_whose_definition_has_changed(
        self, scene: Scene, matters: bool
    ) -> None:
        def replace_tool() -> None:
            scene.toolbox.unregister(OWN)
            changed = (
                {"description": "Does something else by now."}
                if matters
                else {"display_name": "A watched one"}
            )
            scene.toolbox.register(type("Watched", (Watched,), changed)())

        run = scene.ask_and_start(replace_tool)
        if matters:
            scene.assert_asked_again(run, "The tool or its level changed")
        else:
            scene.assert_started(run)

    @MATTERS
    def test_asks_again_if_another_run_has_used_up_a_limit(
        self, scene: Scene, matters: bool
    ) -> None:
        scene.limit(OWN)
        run, other = scene.ask(), scene.ask()
        for each in (run, other):
            scene.approve(each)
        beside = (
            (lambda: scene.workshop.drive(other))
            if matters
            else (lambda: scene.work_beside(call(CLOCK)))
        )
        run = scene.start(run, beside)
        assert len(scene.recorder.effects) == 1
        assert statuses(run) == [CallStatus.AWAITING_APPROVAL if matters else CallStatus.SUCCEEDED]
        if matters:
            assert "A limit was reached" in scene.workshop.card(run).why
            scene.approve(run)
            assert statuses(scene.start(run)) == [CallStatus.SUCCEEDED]
        else:
            scene.workshop.cancel(other)

    @MATTERS
    def test_asks_again_about_a_changed_effect(self, scene: Scene, matters: bool) -> None:
        run = scene.ask_and_start(
            lambda: setattr(scene.tool, "state", "other" if matters else "old")
        )
        if matters:
            scene.assert_asked_again(run, "The target changed since this was approved.")
        else:
            scene.assert_started(run)

    @MATTERS
    def test_asks_again_about_params_changed_in_the_database(
        self, scene: Scene, matters: bool
    ) -> None:
        run = scene.ask()
        scene.approve(run)
        run.tool_calls.update(params={"name": "b" if matters else "a"})
        run = scene.start(run)
        if matters:
            scene.assert_asked_again(run, "The parameters were changed in the database")
        else:
            scene.assert_started(run)

    @MATTERS
    def test_does_not_start_calls_of_a_stopped_employee(self, scene: Scene, matters: bool) -> None:
        workshop = scene.workshop
        provider = workshop.employee.provider
        other = Employee.objects.create(
            organization=workshop.organization, name="Eve", provider=provider
        )
        stopped = workshop.employee if matters else other
        run = scene.ask_and_start(lambda: stops.stop_employee(workshop.operator, stopped.pk))
        if matters:
            assert (run.status, statuses(run)) == (RunStatus.QUEUED, [CallStatus.APPROVED])
            assert not scene.recorder.effects
            stops.release_employee(workshop.admin, stopped.pk)
            run = scene.start(run)
        scene.assert_started(run)

    @MATTERS
    def test_does_not_start_calls_of_a_cancelled_run(self, scene: Scene, matters: bool) -> None:
        run, other = scene.ask(), scene.ask()
        scene.approve(run)
        run = scene.start(run, lambda: scene.workshop.cancel(run if matters else other))
        if matters:
            assert (run.status, statuses(run)) == (RunStatus.CANCELLED, [CallStatus.CANCELLED])
            assert not scene.recorder.effects
        else:
            scene.assert_started(run)

    @MATTERS
    def test_does_not_start_calls_of_an_undone_bulk_decision(
        self, scene: Scene, matters: bool
    ) -> None:
        run, other = scene.ask(), scene.ask()
        bulks = {}
        for each in (run, other):
            bulks[each.pk] = uuid4()
            Approval.objects.filter(pk=scene.approve(each).pk).update(bulk_id=bulks[each.pk])
        undone = bulks[run.pk if matters else other.pk]
        run = scene.start(run, lambda: withhold(scene.workshop.approver, undone))
        if matters:
            assert statuses(run) == [CallStatus.APPROVED]
            assert not scene.recorder.effects
        else:
            scene.assert_started(run)

    @MATTERS
    def test_asks_again_once_the_approval_has_expired(self, scene: Scene, matters: bool) -> None:
        until = Now() + timedelta(seconds=-1 if matters else 60)
        run = scene.ask()
        card = scene.approve(run)
        run = scene.start(
            run, lambda: Approval.objects.filter(pk=card.pk).update(valid_until=until)
        )
        if matters:
            scene.assert_asked_again(run, "The approval was not used in time.")
        else:
            scene.assert_started(run)

    @MATTERS
    def test_judges_a_pass_again_if_its_rules_change(self, scene: Scene, matters: bool) -> None:
        tool = OWN if matters else OTHER
        run = scene.ask(meanwhile=lambda: scene.workshop.raise_for_all(tool, Level.DESTRUCTIVE))
        assert statuses(run) == [CallStatus.AWAITING_APPROVAL]
        assert scene.workshop.card(run).level == (Level.DESTRUCTIVE if matters else Level.WRITE)
        assert (scene.tool.previews, scene.tool.was_locked) == (2 if matters else 1, False)

    @MATTERS
    def test_counts_another_runs_calls_when_it_judges_a_pass(
        self, scene: Scene, matters: bool
    ) -> None:
        scene.limit(SLEEP)
        beside = call(SLEEP, ms=1) if matters else call(CLOCK)
        run = scene.ask(call(SLEEP, ms=0), meanwhile=lambda: scene.work_beside(beside))
        assert statuses(run) == [
            CallStatus.AWAITING_APPROVAL,
            CallStatus.AWAITING_APPROVAL if matters else CallStatus.SUCCEEDED,
        ]

    @MATTERS
    def test_refuses_a_call_that_needs_another_preview_in_a_stopped_pass(
        self, scene: Scene, matters: bool
    ) -> None:
        def raise_and_stop() -> None:
            scene.workshop.raise_for_all(OWN, Level.DESTRUCTIVE)
            if matters:
                stops.stop_employee(scene.workshop.operator, scene.workshop.employee.pk)

        run = scene.ask(meanwhile=raise_and_stop)
        assert statuses(run) == [CallStatus.REJECTED if matters else CallStatus.AWAITING_APPROVAL]
        assert scene.tool.previews == (1 if matters else 2)

    @MATTERS
    def test_refuses_a_call_over_its_limit_in_a_stopped_pass(
        self, scene: Scene, matters: bool
    ) -> None:
        def use_up_and_stop() -> None:
            scene.work_beside(call(SLEEP, ms=1) if matters else call(CLOCK))
            stops.stop_employee(scene.workshop.operator, scene.workshop.employee.pk)

        scene.limit(SLEEP)
        run = scene.ask(call(SLEEP, ms=0), meanwhile=use_up_and_stop)
        assert statuses(run) == [
            CallStatus.AWAITING_APPROVAL,
            CallStatus.REJECTED if matters else CallStatus.READY,
        ]

    @MATTERS
    def test_drops_a_cancelled_pass(self, scene: Scene, matters: bool) -> None:
        other = scene.ask()
        scene.workshop.play(asking(call(OWN, name="a")))
        run = scene.workshop.submit()
        run = scene.start(run, lambda: scene.workshop.cancel(run if matters else other))
        assert statuses(run) == ([] if matters else [CallStatus.AWAITING_APPROVAL])

    @MATTERS
    def test_judges_a_recipes_step_again_if_its_tool_was_stopped_meanwhile(
        self, scene: Scene, matters: bool
    ) -> None:
        scene.tool.acts = [
            lambda: stops.stop_tool(scene.workshop.operator, OWN if matters else OTHER)
        ]
        run = scene.work_beside(call(Guided.name))
        assert statuses(run)[1] == (
            CallStatus.REJECTED if matters else CallStatus.AWAITING_APPROVAL
        )
        assert scene.tool.previews == 1

    @MATTERS
    def test_counts_another_runs_calls_when_it_judges_an_inner_call(
        self, scene: Scene, matters: bool
    ) -> None:
        scene.limit(CHECKED)
        scene.inner.acts = [lambda: scene.work_beside(call(CHECKED if matters else CLOCK))]
        run = scene.work_beside(call(composed_probes.Ask.name, inner=CHECKED))
        assert data_of(calls(run)[0])[0]["success"] is not matters
        assert run.tool_calls.filter(tool=CHECKED).exists() is not matters

    @MATTERS
    def test_judges_an_agents_request_again_if_its_level_was_raised_meanwhile(
        self, scene: Scene, matters: bool
    ) -> None:
        tool = OWN if matters else OTHER
        scene.tool.acts = [lambda: scene.workshop.raise_for_all(tool, Level.DESTRUCTIVE)]
        row = record_request(make_key(scene.workshop), None, ToolRequest(OWN, {"name": "a"}))
        assert (row.status, row.level) == (
            CallStatus.AWAITING_APPROVAL,
            Level.DESTRUCTIVE if matters else Level.WRITE,
        )
        assert (scene.tool.previews, scene.tool.was_locked) == (2 if matters else 1, False)

    @MATTERS
    def test_rejects_a_ready_call_that_now_needs_approval(
        self, scene: Scene, matters: bool
    ) -> None:
        workshop, employee = scene.workshop, scene.workshop.employee.pk
        run = scene.ask(
            call(SLEEP, ms=0), meanwhile=lambda: stops.stop_employee(workshop.operator, employee)
        )
        assert statuses(run)[1] == CallStatus.READY
        workshop.raise_for_all(SLEEP if matters else CLOCK, Level.WRITE)
        stops.release_employee(workshop.admin, employee)
        run = workshop.drive(run)
        assert statuses(run)[1] == (CallStatus.REJECTED if matters else CallStatus.SUCCEEDED)
        assert error_code(calls(run)[1]) == ("OPERATION_NOT_ALLOWED" if matters else "")

    @MATTERS
    def test_rejects_a_forbidden_call_instead_of_replacing_its_unstarted_card(
        self, scene: Scene, matters: bool
    ) -> None:
        run = scene.ask()
        card = scene.approve(run)
        scene.tool.acts = [
            lambda: stops.stop_tool(scene.workshop.operator, OWN if matters else OTHER)
        ]
        assert replace_unstarted_card(card.pk, "It did not start.")
        assert statuses(run) == [CallStatus.REJECTED if matters else CallStatus.AWAITING_APPROVAL]
        assert error_code(calls(run)[0]) == ("TOOL_DISABLED" if matters else "")

    @MATTERS
    def test_replaces_the_card_of_an_unstarted_call_that_is_allowed_again(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch, matters: bool
    ) -> None:
        def compute_and_release(*judged: Any) -> object:
            effect = compute_effect_again(*judged)
            if matters:
                stops.release_tool(scene.workshop.admin, OWN)
            return effect

        run = scene.ask()
        card = scene.approve(run)
        stops.stop_tool(scene.workshop.operator, OWN)
        monkeypatch.setattr(current_calls, "compute_effect_again", compute_and_release)
        assert replace_unstarted_card(card.pk, "It did not start.")
        assert statuses(run) == [CallStatus.AWAITING_APPROVAL if matters else CallStatus.REJECTED]

    @MATTERS
    def test_refuses_an_edit_whose_verdict_has_changed(self, scene: Scene, matters: bool) -> None:
        card = scene.workshop.card(scene.ask())
        scene.tool.acts = [
            lambda: scene.workshop.raise_for_all(OWN if matters else OTHER, Level.DESTRUCTIVE)
        ]
        if matters:
            with pytest.raises(Conflict, match="permissions have changed"):
                scene.workshop.edit(card, {"name": "b"})
            card.refresh_from_db()
            assert (card.status, calls(again(card.run))[0].params) == (
                ApprovalStatus.PENDING,
                {"name": "a"},
            )
        else:
            assert scene.workshop.edit(card, {"name": "b"}).params == {"name": "b"}
