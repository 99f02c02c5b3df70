"""The late report of an abandoned tool settles only its own unknown outcome."""

import pytest

from agents.accounts.models import AuditEntry
from agents.employees.models import Grant
from agents.runs.engine import lease
from agents.runs.engine.loop import start_driving
from agents.runs.models import CallStatus, Run, RunStatus
from tests.probes import Named, ShortEffect, reach
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    again,
    asking,
    call,
    calls,
    eventually,
    lose_worker,
    payloads,
    statuses,
    write_in_flight,
)
from tools.contract import ErrorCode, ToolContext, ToolError, ToolResult
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def given_up(workshop: Workshop, recorder: Recorder) -> Run:
    """A run whose write has had its effect, but does not reply before its timeout."""
    recorder.hold("slow")
    workshop.play(asking(call("probe.shortEffect", name="slow")))
    run = workshop.work()
    workshop.approve(workshop.card(run))
    return workshop.drive(run)


def is_reported(run: Run) -> bool:
    return (
        bool(payloads(run, "call_resolved"))
        and AuditEntry.objects.filter(action="late_report").exists()
    )


class TestALateReport:
    def test_is_preceded_by_an_unknown_outcome(
        self, workshop: Workshop, given_up: Run, recorder: Recorder
    ) -> None:
        assert given_up.status == RunStatus.NEEDS_ATTENTION
        assert statuses(given_up) == [CallStatus.OUTCOME_UNKNOWN]
        assert list(recorder.effects.values()) == [1]
        workshop.resolve(calls(given_up)[0])

    def test_settles_the_outcome_and_resumes_the_run(
        self, workshop: Workshop, given_up: Run, recorder: Recorder
    ) -> None:
        recorder.release("slow")
        eventually(lambda: is_reported(given_up))
        (row,) = calls(given_up)
        assert (row.status, row.result["summary"]) == (CallStatus.SUCCEEDED, "Did slow")  # type: ignore[index]
        assert not workshop.cards(given_up)
        assert payloads(given_up, "call_resolved")[0]["by"] == "gadget"
        assert again(given_up).status == RunStatus.QUEUED
        assert workshop.drive(given_up).status == RunStatus.SUCCEEDED
        assert list(recorder.effects.values()) == [1]

    def test_does_not_change_a_resolution_by_a_person_but_is_shown_and_audited(
        self, workshop: Workshop, given_up: Run, recorder: Recorder
    ) -> None:
        workshop.resolve(calls(given_up)[0], "not_done", "I did not see it.")
        before = calls(given_up)[0]
        recorder.release("slow")
        eventually(lambda: is_reported(given_up))
        after = calls(given_up)[0]
        assert (after.status, after.content, after.finished_at) == (
            before.status,
            before.content,
            before.finished_at,
        )
        events = payloads(given_up, "call_resolved")
        assert [line["outcome"] for line in events] == ["not_done", "late_report"]
        assert "succeeded" in events[1]["reason"]
        assert AuditEntry.objects.get(action="late_report").payload["outcome"] == "succeeded"

    def test_settles_only_the_call_if_the_run_was_cancelled(
        self, workshop: Workshop, given_up: Run, recorder: Recorder
    ) -> None:
        workshop.cancel(given_up)
        recorder.release("slow")
        eventually(lambda: is_reported(given_up))
        assert statuses(given_up) == [CallStatus.SUCCEEDED]
        assert again(given_up).status == RunStatus.CANCELLED

    def test_of_a_failure_settles_the_outcome(
        self, workshop: Workshop, toolbox: Toolbox, recorder: Recorder
    ) -> None:
        toolbox.register(SlowRefusal())
        Grant.objects.create(employee=workshop.employee, tool=SlowRefusal.name)
        recorder.hold("slow")
        workshop.play(asking(call(SlowRefusal.name, name="slow")))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        assert statuses(workshop.drive(run)) == [CallStatus.OUTCOME_UNKNOWN]
        recorder.release("slow")
        eventually(lambda: is_reported(run))
        assert statuses(run) == [CallStatus.FAILED]
        assert payloads(run, "call_resolved")[0]["outcome"] == "failed"


class SlowRefusal(ShortEffect):
    """A write that refuses only after it was abandoned."""

    name = "probe.slowRefusal"

    def execute(self, params: Named, context: ToolContext) -> ToolResult:
        reach(params.name)
        raise ToolError(ErrorCode.NOT_FOUND, "There is no such thing.", attempted=False)


class TestAWorkerThatLostItsLease:
    def test_reports_the_result_of_its_write_even_if_another_worker_drives_the_run(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        with write_in_flight(workshop, recorder) as run:
            assert workshop.drive(lose_worker(run)).status == RunStatus.NEEDS_ATTENTION
            recorder.release("a")
        assert statuses(run) == [CallStatus.SUCCEEDED]
        assert again(run).status == RunStatus.QUEUED
        assert workshop.drive(run).status == RunStatus.SUCCEEDED
        assert list(recorder.effects.values()) == [1]

    def test_reports_the_result_even_before_the_next_driver_has_settled_the_call(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        with write_in_flight(workshop, recorder) as run:
            lose_worker(run)
            my_lease = lease.acquire(run.pk)
            assert my_lease is not None
            recorder.release("a")
        assert statuses(run) == [CallStatus.SUCCEEDED]
        start_driving(my_lease)
        assert statuses(run) == [CallStatus.SUCCEEDED]
        lose_worker(run)
