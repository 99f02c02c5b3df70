"""Stops: once a stop is committed, the work that it covers does not start, even after a restart,
until an admin lifts the stop."""

from collections.abc import Callable

import pytest
from django.db import transaction
from django.db.models.functions import Now

from agents.accounts.models import AuditEntry, Organization
from agents.employees.models import Employee, ToolRule
from agents.platform.refusals import Conflict, Forbidden, NotFound
from agents.runs import actions, stops
from agents.runs.engine import lease
from agents.runs.models import Approval, ApprovalStatus, CallStatus, Run, RunStatus
from agents.runs.titles import title_run
from agents.worker.sweeper import sweep_once
from tests.features import feature
from tests.model_responses import failing
from tests.model_server import Call, ModelServer, Response
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    again,
    all_at_once,
    asking,
    build_workshop,
    call,
    calls,
    die_while_executing,
    error_code,
    event_types,
    eventually,
    lose_worker,
    passes,
    payloads,
    statuses,
)
from tools.contract import Level

pytestmark = pytest.mark.django_db(transaction=True)

Stop = Callable[[Workshop], object]


def stop_everything(workshop: Workshop) -> None:
    stops.stop_everything(workshop.operator)


def stop_its_employee(workshop: Workshop) -> None:
    stops.stop_employee(workshop.operator, workshop.employee.pk)


def release(workshop: Workshop, stop: Stop) -> None:
    if stop is stop_everything:
        stops.release_everything(workshop.admin)
    else:
        stops.release_employee(workshop.admin, workshop.employee.pk)


BOTH = pytest.mark.parametrize("stop", [stop_everything, stop_its_employee])


@BOTH
class TestAStop:
    def test_keeps_runs_from_being_driven_until_it_is_lifted(
        self, workshop: Workshop, stop: Stop
    ) -> None:
        workshop.play(asking(call("utility.calculate", operation="add", a=1, b=2)))
        run = workshop.submit()
        stop(workshop)
        run = workshop.drive(run)
        assert (run.status, run.lease_epoch, passes(run)) == (RunStatus.QUEUED, 0, [])
        assert "acme-operator stopped" in run.stopped_because
        assert payloads(run, "run_waiting") == [{"approval_ids": [], "reason": run.stopped_because}]
        release(workshop, stop)
        assert again(run).stopped_because == ""
        assert workshop.drive(run).status == RunStatus.SUCCEEDED

    def test_refuses_new_tasks(self, workshop: Workshop, stop: Stop) -> None:
        workshop.play()
        stop(workshop)
        with pytest.raises(Conflict, match="acme-operator stopped"):
            workshop.submit()
        release(workshop, stop)
        assert workshop.work().status == RunStatus.SUCCEEDED

    def test_keeps_ended_runs_from_resuming(self, workshop: Workshop, stop: Stop) -> None:
        workshop.play()
        run = workshop.work()
        stop(workshop)
        with pytest.raises(Conflict):
            workshop.say(run)
        with pytest.raises(Conflict):
            actions.continue_run(workshop.operator, run.pk)
        assert (again(run).status, again(run).message_count) == (RunStatus.SUCCEEDED, 1)

    def test_interrupts_the_streaming_answer(
        self, workshop: Workshop, model: ModelServer, stop: Stop
    ) -> None:
        model.script(Response(text="Too late.", hold="middle"))
        run = workshop.submit()
        with workshop.driving(run):
            model.wait_for_held()
            stop(workshop)
        run = again(run)
        assert (run.status, run.lease_owner, passes(run)) == (RunStatus.QUEUED, "", [])
        model.script(Response(text="In time."))
        release(workshop, stop)
        assert workshop.drive(run).answer == "In time."

    def test_does_not_start_calls_that_the_model_requested_meanwhile(
        self, workshop: Workshop, model: ModelServer, recorder: Recorder, stop: Stop
    ) -> None:
        recorder.hold("slow")
        model.script(Response(calls=(Call("probe.gate", {"name": "slow"}),), hold="start"))
        run = workshop.submit()
        with workshop.driving(run):
            model.wait_for_held()
            stop(workshop)
            model.release()
        assert not recorder.arrivals["slow"]
        assert again(run).status == RunStatus.QUEUED

    def test_lets_executing_calls_finish_but_does_not_start_other_calls(
        self, workshop: Workshop, recorder: Recorder, stop: Stop
    ) -> None:
        recorder.hold("slow")
        workshop.play(asking(call("probe.gate", name="slow")))
        run = workshop.submit()
        with workshop.driving(run):
            recorder.await_arrival("slow")
            stop(workshop)
            recorder.release("slow")
        run = again(run)
        assert (run.status, statuses(run), len(passes(run))) == (
            RunStatus.QUEUED,
            [CallStatus.SUCCEEDED],
            1,
        )

    def test_does_not_start_approved_writes_but_keeps_their_approvals(
        self, workshop: Workshop, recorder: Recorder, stop: Stop
    ) -> None:
        workshop.play(asking(call("probe.effect", name="a")))
        run = workshop.work()
        stop(workshop)
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        (row,) = calls(run)
        assert (row.status, row.attempts, dict(recorder.effects)) == (CallStatus.APPROVED, 0, {})
        assert row.approvals.get().status == ApprovalStatus.APPROVED
        release(workshop, stop)
        assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED]
        assert list(recorder.effects.values()) == [1]

    def test_remains_in_effect_after_the_loss_of_the_worker(
        self, workshop: Workshop, stop: Stop, recorder: Recorder
    ) -> None:
        recorder.hold("slow")
        workshop.play(asking(call("probe.gate", name="slow")))
        run = workshop.submit()
        die_while_executing(run)
        stop(workshop)
        run = lose_worker(run)
        assert run.status == RunStatus.QUEUED
        run = workshop.drive(run)
        assert (run.status, run.lease_owner) == (RunStatus.QUEUED, "")

    def test_applies_to_a_run_that_has_not_recorded_it_yet(
        self, workshop: Workshop, stop: Stop
    ) -> None:
        run = workshop.submit()
        stop(workshop)
        # As if the run had been created at the moment of the stop.
        Run.objects.filter(pk=run.pk).update(stopped_because="")
        assert workshop.drive(run).lease_epoch == 0
        with transaction.atomic():
            sweep_once()
        assert "stopped" in again(run).stopped_because

    def test_the_sweeper_resumes_runs_if_the_process_that_lifted_the_stop_was_killed(
        self, workshop: Workshop, stop: Stop
    ) -> None:
        workshop.play()
        run = workshop.submit()
        stop(workshop)
        Organization.objects.update(stopped_at=None, stopped_by="")
        Employee.objects.update(stopped_at=None, stopped_by="")
        with transaction.atomic():
            sweep_once()
        assert again(run).stopped_because == ""
        assert workshop.drive(run).status == RunStatus.SUCCEEDED

    def test_is_reported_as_lifted_on_waiting_runs(self, workshop: Workshop, stop: Stop) -> None:
        workshop.play(asking(call("probe.effect", name="a")))
        run = workshop.work()
        stop(workshop)
        release(workshop, stop)
        assert event_types(run)[-4:] == ["run_waiting", "run_waiting", "run_resumed", "run_waiting"]
        assert payloads(run, "run_resumed") == [{"by": "gadget", "reason": "The stop was lifted."}]
        assert (again(run).status, payloads(run, "run_waiting")[-1]["decisions"]) == (
            RunStatus.WAITING,
            1,
        )

    def test_leaves_the_pause_after_a_provider_failure_unchanged_when_lifted(
        self, workshop: Workshop, stop: Stop, model: ModelServer
    ) -> None:
        model.script(failing(429, retry_after="800"))
        run = workshop.work()
        due = run.next_wake_at
        assert due is not None
        stop(workshop)
        release(workshop, stop)
        assert again(run).next_wake_at == due

    def test_is_reported_as_lifted_only_once_if_an_approved_call_can_start(
        self, workshop: Workshop, stop: Stop
    ) -> None:
        workshop.play(asking(call("probe.effect", name="a")))
        run = workshop.work()
        workshop.approve(workshop.card(run), grace_s=60)
        stop(workshop)
        Approval.objects.update(start_after=Now())
        release(workshop, stop)
        assert payloads(run, "run_resumed") == [{"by": "gadget", "reason": "The stop was lifted."}]
        assert again(run).status == RunStatus.QUEUED

    def test_does_not_prevent_cancelling(self, workshop: Workshop, stop: Stop) -> None:
        run = workshop.submit()
        stop(workshop)
        workshop.cancel(run)
        assert (again(run).status, again(run).stopped_because) == (RunStatus.CANCELLED, "")
        release(workshop, stop)
        assert event_types(run)[-1] == "run_finished"

    def test_is_recorded_once_for_concurrent_requests(self, workshop: Workshop, stop: Stop) -> None:
        refused = []

        def press() -> None:
            try:
                stop(workshop)
            except Conflict as refusal:
                refused.append(refusal)

        run = workshop.submit()
        all_at_once([press] * 5)
        assert (len(refused), len(payloads(run, "run_waiting"))) == (4, 1)
        entry = AuditEntry.objects.get(action="stopped")
        assert entry.actor == "user:acme-operator"

    def test_can_be_made_by_an_operator_and_lifted_only_by_an_admin(
        self, workshop: Workshop, stop: Stop
    ) -> None:
        viewer = Workshop(
            workshop.organization, workshop.employee, {"operator": workshop.members["viewer"]}
        )
        with pytest.raises(Forbidden):
            stop(viewer)
        stop(workshop)
        approver = Workshop(workshop.organization, workshop.employee, {"admin": workshop.approver})
        with pytest.raises(Forbidden):
            release(approver, stop)
        assert "stopped" in AuditEntry.objects.get(action="stopped").action


class TestTwoStops:
    def test_remain_in_effect_until_both_are_lifted(self, workshop: Workshop) -> None:
        workshop.play()
        run = workshop.submit()
        stop_its_employee(workshop)
        stop_everything(workshop)
        assert again(run).stopped_because == "acme-operator stopped everything."
        release(workshop, stop_everything)
        assert again(run).stopped_because == "acme-operator stopped Dana."
        assert workshop.drive(run).status == RunStatus.QUEUED
        release(workshop, stop_its_employee)
        assert workshop.drive(run).status == RunStatus.SUCCEEDED

    def test_do_not_affect_other_organizations(self, workshop: Workshop) -> None:
        other = build_workshop("globex")
        other.play()
        run = other.submit()
        stop_everything(workshop)
        assert other.drive(run).status == RunStatus.SUCCEEDED
        with pytest.raises(NotFound):
            stops.stop_employee(workshop.operator, other.employee.pk)

    def test_of_one_organization_can_be_lifted_without_lifting_stops_of_another(
        self, workshop: Workshop
    ) -> None:
        other = build_workshop("globex")
        tools = ("utility.calculate", "probe.effect")
        other.raise_for_all("probe.effect", Level.DESTRUCTIVE)
        stops.stop_everything(other.operator)
        stops.stop_tool(other.operator, "utility.calculate")
        stop_everything(workshop)
        for tool in tools:
            stops.stop_tool(workshop.operator, tool)
        release(workshop, stop_everything)
        for tool in tools:
            stops.release_tool(workshop.admin, tool)
        assert Organization.objects.get(pk=other.organization.pk).stopped_at is not None
        stopped = ToolRule.objects.filter(stopped_at__isnull=False)
        assert [(rule.organization_id, rule.tool) for rule in stopped] == [
            (other.organization.pk, "utility.calculate")
        ]
        assert ToolRule.objects.count() == 2


class TestAStoppedTool:
    def test_ends_side_work_of_its_own_organization_only(self, workshop: Workshop) -> None:
        other = build_workshop("globex")
        tool = "utility.calculate"
        mine, foreign = workshop.submit().pk, other.submit().pk
        with (
            lease.watch_side_work(mine, tool) as ours,
            lease.watch_side_work(foreign, tool) as theirs,
        ):
            stops.stop_tool(workshop.operator, tool)
            eventually(ours.is_set)
            assert not theirs.is_set()

    def test_is_refused_and_the_reason_names_who_stopped_it(self, workshop: Workshop) -> None:
        stops.stop_tool(workshop.operator, "utility.calculate")
        workshop.play(asking(call("utility.calculate", operation="add", a=1, b=2)))
        run = workshop.work()
        (row,) = calls(run)
        assert (row.status, error_code(row)) == (CallStatus.REJECTED, "TOOL_DISABLED")
        assert "was stopped by acme-operator" in row.content

    def test_has_its_approved_calls_rejected(self, workshop: Workshop, recorder: Recorder) -> None:
        workshop.play(asking(call("probe.effect", name="a")))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        stops.stop_tool(workshop.operator, "probe.effect")
        run = workshop.drive(run)
        (row,) = calls(run)
        assert (row.status, error_code(row), dict(recorder.effects)) == (
            CallStatus.REJECTED,
            "TOOL_DISABLED",
            {},
        )

    def test_runs_again_when_resumed_and_its_rule_is_deleted(self, workshop: Workshop) -> None:
        stops.stop_tool(workshop.admin, "utility.calculate")
        with pytest.raises(Forbidden):
            stops.release_tool(workshop.operator, "utility.calculate")
        stops.release_tool(workshop.admin, "utility.calculate")
        assert not ToolRule.objects.exists()
        workshop.play(asking(call("utility.calculate", operation="add", a=1, b=2)))
        assert statuses(workshop.work()) == [CallStatus.SUCCEEDED]
        with pytest.raises(Conflict):
            stops.release_tool(workshop.admin, "utility.calculate")

    def test_stays_usable_for_other_organizations(self, workshop: Workshop) -> None:
        other = build_workshop("globex")
        stops.stop_tool(workshop.operator, "utility.calculate")
        other.play(asking(call("utility.calculate", operation="add", a=1, b=2)))
        assert statuses(other.work()) == [CallStatus.SUCCEEDED]

    def test_is_stopped_in_every_version_when_one_version_is_stopped(
        self, workshop: Workshop
    ) -> None:
        stops.stop_tool(workshop.operator, "utility.calculate@1.0")
        assert ToolRule.objects.get().tool == "utility.calculate"

    def test_for_titles_does_not_request_titles_from_the_model(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        run = workshop.submit("A long task.\nWith a second line.")
        stops.stop_tool(workshop.operator, "system.titleRun")
        assert not title_run(run.pk)
        assert not model.requests

    def test_must_exist(self, workshop: Workshop) -> None:
        with pytest.raises(NotFound):
            stops.stop_tool(workshop.operator, "no.such")


def test_a_raised_level_needs_approval_and_remains_after_a_stop_is_lifted(
    workshop: Workshop,
) -> None:
    ToolRule.objects.create(
        organization=workshop.organization, tool="utility.calculate", level="write"
    )
    workshop.play(asking(call("utility.calculate", operation="add", a=1, b=2)))
    run = workshop.work()
    card = workshop.card(run)
    assert "an admin raised the level from read" in card.why
    stops.stop_tool(workshop.operator, "utility.calculate")
    stops.release_tool(workshop.admin, "utility.calculate")
    assert ToolRule.objects.get().level == "write"
    workshop.approve(card)
    assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED]


@feature(
    "The gate",
    "Stop everything, an employee or a tool, and nothing new starts until someone resumes",
    "agents/runs/stops.py",
)
def test_no_call_starts_after_a_stop_that_races_with_many_starts(
    workshop: Workshop, recorder: Recorder
) -> None:
    """Ten drivers race with the stop. In each run, no call or pass starts after the event of the
    stop."""
    workshop.play(
        *[asking(call("utility.calculate", operation="add", a=number, b=1)) for number in range(4)]
    )
    begun = [workshop.submit() for _ in range(10)]
    works: list[Callable[[], object]] = [lambda run=run: workshop.drive(run) for run in begun]  # type: ignore[misc]
    all_at_once([*works, lambda: stops.stop_everything(workshop.operator)])
    eventually(lambda: not Run.objects.filter(status=RunStatus.RUNNING).exists())
    for run in begun:
        types = event_types(run)
        if "run_waiting" in types:
            assert "tool_start" not in types[types.index("run_waiting") :]
            assert "pass_started" not in types[types.index("run_waiting") :]
        else:
            assert again(run).status == RunStatus.SUCCEEDED
