"""Writes to Gadget's own database: each is committed in one transaction with its approval and its
result, so that all three are stored or none is."""

import pytest

from agents.runs.engine import lease
from agents.runs.models import (
    TERMINAL_CALLS,
    Approval,
    ApprovalStatus,
    CallStatus,
    Event,
    Run,
    RunStatus,
)
from tests.probes import Spoil
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    asking,
    call,
    calls,
    error_code,
    event_types,
    last_call,
    lose_worker,
    payloads,
    statuses,
)
from tools.office.records.models import Record

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def record(workshop: Workshop) -> Record:
    return workshop.record(name="Acme")


def run_spoiled_write(workshop: Workshop, record: Record, how: str) -> Run:
    """Run an approved write that goes wrong in the given way, or succeeds if `how` is empty."""
    workshop.play(asking(call("probe.spoil", record_id=record.pk, to="New", how=how)))
    run = workshop.work()
    workshop.approve(workshop.card(run))
    return workshop.drive(run)


def name_of(record: Record) -> str:
    record.refresh_from_db()
    return record.name


def card_status(run: Run) -> str:
    return str(Approval.objects.get(run=run).status)


class TestASuccessfulWrite:
    def test_is_recorded_with_its_start_and_its_decision(
        self, workshop: Workshop, record: Record
    ) -> None:
        run = run_spoiled_write(workshop, record, "")
        (row,) = calls(run)
        assert (run.status, row.status, row.attempts) == (
            RunStatus.SUCCEEDED,
            CallStatus.SUCCEEDED,
            1,
        )
        assert (row.exec_epoch, card_status(run)) == (run.lease_epoch, ApprovalStatus.CONSUMED)
        assert row.started_at is not None
        assert name_of(record) == "New"
        lines = Event.objects.filter(run=run, type__in=("tool_start", "tool_result")).order_by(
            "seq"
        )
        assert [line.type for line in lines] == ["tool_start", "tool_result"]

    def test_is_invisible_before_its_commit(
        self, workshop: Workshop, record: Record, recorder: Recorder
    ) -> None:
        recorder.hold("inside")
        workshop.play(asking(call("probe.rename", record_id=record.pk, to="New", gate="inside")))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        with workshop.driving(run):
            recorder.await_arrival("inside")
            assert name_of(record) == "Acme"
            assert statuses(run) == [CallStatus.APPROVED]
            assert "tool_start" not in event_types(run)
            recorder.release("inside")
        assert name_of(record) == "New"


class TestAFailedWrite:
    @pytest.mark.parametrize(
        ("how", "code"), [("raise", "TOOL_EXECUTION_FAILED"), ("fail", "NETWORK_ERROR")]
    )
    def test_does_not_change_anything_and_has_a_known_outcome(
        self, workshop: Workshop, record: Record, how: str, code: str
    ) -> None:
        run = run_spoiled_write(workshop, record, how)
        (row,) = calls(run)
        assert name_of(record) == "Acme"
        assert (row.status, error_code(row), row.attempts) == (CallStatus.FAILED, code, 1)
        assert card_status(run) == ApprovalStatus.CONSUMED
        assert run.status == RunStatus.SUCCEEDED
        assert "hunter2" not in row.content

    @pytest.mark.parametrize("how", ["progress", "call"])
    def test_can_be_caused_by_reporting_progress_or_calling_a_tool(
        self, workshop: Workshop, record: Record, how: str
    ) -> None:
        run = run_spoiled_write(workshop, record, how)
        assert (run.status, name_of(record)) == (RunStatus.SUCCEEDED, "Acme")
        assert error_code(last_call(run)) == "OPERATION_NOT_ALLOWED"
        assert "tool_progress" not in event_types(run)

    @pytest.mark.parametrize("how", ["swallow", "swallow sql"])
    def test_is_never_reported_as_done_even_if_the_tool_says_so(
        self, workshop: Workshop, record: Record, how: str
    ) -> None:
        """The tool suppresses a database error; its changes are then rolled back, either
        immediately or at the commit."""
        run = run_spoiled_write(workshop, record, how)
        (row,) = calls(run)
        assert run.status == RunStatus.SUCCEEDED, run.problem
        assert (row.status == CallStatus.SUCCEEDED) == (name_of(record) == "New")
        assert row.status in TERMINAL_CALLS

    def test_that_fails_at_the_commit_does_not_change_anything(
        self, workshop: Workshop, record: Record
    ) -> None:
        """A reference to a missing row is refused only at the commit."""
        run = run_spoiled_write(workshop, record, "dangle")
        (row,) = calls(run)
        assert name_of(record) == "Acme"
        assert (row.status, error_code(row), row.attempts) == (
            CallStatus.FAILED,
            "OPERATION_FAILED",
            0,
        )
        assert run.status == RunStatus.SUCCEEDED

    def test_lets_the_next_call_of_the_pass_run(self, workshop: Workshop, record: Record) -> None:
        other = workshop.record(name="Other")
        spoil = call("probe.spoil", record_id=record.pk, to="New", how="raise")
        workshop.play(asking(spoil, call("probe.rename", record_id=other.pk, to="Renamed")))
        run = workshop.work()
        for card in workshop.cards(run):
            workshop.approve(card)
        run = workshop.drive(run)
        assert statuses(run) == [CallStatus.FAILED, CallStatus.SUCCEEDED]
        assert name_of(other) == "Renamed"


class TestABusyDatabase:
    def test_retries_the_write(self, workshop: Workshop, record: Record) -> None:
        run = run_spoiled_write(workshop, record, "busy once")
        (row,) = calls(run)
        assert Spoil.tries[str(row.pk)] == 2
        assert (row.status, row.attempts, name_of(record)) == (CallStatus.SUCCEEDED, 1, "New")
        assert event_types(run).count("tool_start") == 1

    def test_fails_the_call_after_three_attempts(self, workshop: Workshop, record: Record) -> None:
        run = run_spoiled_write(workshop, record, "busy")
        (row,) = calls(run)
        assert Spoil.tries[str(row.pk)] == 3
        assert (row.status, error_code(row), row.attempts) == (
            CallStatus.FAILED,
            "OPERATION_FAILED",
            0,
        )
        assert name_of(record) == "Acme"
        assert card_status(run) == ApprovalStatus.CANCELLED
        assert payloads(run, "approval_decided")[-1]["status"] == "cancelled"
        assert run.status == RunStatus.SUCCEEDED

    def test_fails_the_call_if_it_interrupts_the_preview(
        self, workshop: Workshop, record: Record
    ) -> None:
        workshop.play(asking(call("probe.crowded", record_id=record.pk, to="New")))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        (row,) = calls(run)
        assert (row.status, error_code(row)) == (CallStatus.FAILED, "OPERATION_FAILED")
        assert run.status == RunStatus.SUCCEEDED


def test_a_write_interrupted_before_its_transaction_runs_once_with_the_next_worker(
    workshop: Workshop, record: Record
) -> None:
    workshop.play(asking(call("probe.rename", record_id=record.pk, to="New")))
    run = workshop.work()
    workshop.approve(workshop.card(run))
    assert lease.acquire(run.pk) is not None
    run = lose_worker(run)
    assert statuses(run) == [CallStatus.APPROVED]
    run = workshop.drive(run)
    assert statuses(run) == [CallStatus.SUCCEEDED]
    record.refresh_from_db()
    assert (record.name, record.version) == ("New", 2)
