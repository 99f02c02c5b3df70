"""A cancelled run ends immediately if no driver has it, otherwise once its executing calls have
ended."""

import pytest
from django.db import OperationalError

from agents.accounts.models import AuditEntry
from agents.platform.refusals import Conflict, Forbidden, NotFound
from agents.runs import actions
from agents.runs.engine import lease
from agents.runs.models import Approval, ApprovalStatus, CallStatus, ExitReason, Run, RunStatus
from tests.model_server import Call, ModelServer, Response
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    again,
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
    write_in_flight,
)

pytestmark = pytest.mark.django_db(transaction=True)


def is_cancelled(run: Run) -> bool:
    run = again(run)
    return (run.status, run.exit_reason, run.lease_owner) == (
        RunStatus.CANCELLED,
        ExitReason.CANCELLED,
        "",
    )


class TestCancellingARunWithoutADriver:
    def test_ends_a_queued_run_immediately_so_that_it_is_never_driven(
        self, workshop: Workshop
    ) -> None:
        run = workshop.submit()
        workshop.cancel(run)
        assert is_cancelled(workshop.drive(run))
        assert event_types(run) == ["run_started", "cancel_requested", "run_finished"]
        assert payloads(run, "cancel_requested") == [{"by": "acme-operator"}]
        assert AuditEntry.objects.get(action="run_cancelled").subject == f"run:{run.pk}"

    def test_ends_a_waiting_run_immediately_with_its_cards_and_calls(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        workshop.play(asking(call("probe.effect", name="a"), call("probe.effect", name="b")))
        run = workshop.work()
        pending, approved = workshop.cards(run)
        workshop.approve(approved, grace_s=10)
        workshop.cancel(run)
        assert is_cancelled(run)
        assert statuses(run) == [CallStatus.CANCELLED, CallStatus.CANCELLED]
        cards = Approval.objects.filter(run=run).values_list("status", flat=True)
        assert set(cards) == {ApprovalStatus.CANCELLED}
        cancelled_cards = [
            line["approval_id"]
            for line in payloads(run, "approval_decided")
            if line["status"] == "cancelled"
        ]
        assert cancelled_cards == [str(pending.pk), str(approved.pk)]
        assert not recorder.effects

    def test_keeps_an_unknown_outcome_visible_and_open_to_resolution(
        self, workshop: Workshop
    ) -> None:
        workshop.play(asking(call("probe.failingEffect", code="NETWORK_ERROR")))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        assert workshop.drive(run).status == RunStatus.NEEDS_ATTENTION
        workshop.cancel(run)
        assert is_cancelled(run)
        (unknown,) = calls(run)
        assert unknown.status == CallStatus.OUTCOME_UNKNOWN
        assert len(workshop.cards(run)) == 1
        assert workshop.resolve(unknown).status == CallStatus.SUCCEEDED
        assert is_cancelled(run)
        assert not workshop.cards(run)


class TestCancellingADrivenRun:
    def test_interrupts_the_streaming_answer(self, workshop: Workshop, model: ModelServer) -> None:
        model.script(Response(text="Too late.", hold="middle"))
        run = workshop.submit()
        with workshop.driving(run):
            model.wait_for_held()
            workshop.cancel(run)
        assert is_cancelled(run)
        assert not passes(run)

    def test_discards_a_pass_that_came_after_the_request(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.script(Response(text="Too late.", hold="start"))
        run = workshop.submit()
        with workshop.driving(run):
            model.wait_for_held()
            workshop.cancel(run)
            model.release()
        assert is_cancelled(run)
        assert not passes(run)
        assert "assistant_message" not in event_types(run)

    def test_lets_a_read_finish_and_does_not_call_the_model_again(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        recorder.hold("slow")
        workshop.play(asking(call("probe.gate", name="slow")))
        run = workshop.submit()
        with workshop.driving(run):
            recorder.await_arrival("slow")
            assert workshop.cancel(run).status == RunStatus.RUNNING
            recorder.release("slow")
        assert is_cancelled(run)
        assert statuses(run) == [CallStatus.SUCCEEDED]
        assert len(passes(run)) == 1

    def test_lets_a_write_finish_and_records_its_result(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        recorder.hold("a")
        workshop.play(asking(call("probe.effect", name="a"), call("probe.effect", name="b")))
        run = workshop.work()
        for card in workshop.cards(run):
            workshop.approve(card)
        with workshop.driving(run):
            recorder.await_arrival("a")
            workshop.cancel(run)
            recorder.release("a")
        assert is_cancelled(run)
        assert statuses(run) == [CallStatus.SUCCEEDED, CallStatus.CANCELLED]
        assert list(recorder.effects.values()) == [1]

    def test_does_not_start_calls_that_wait_for_a_slot(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        gates = [f"gate {number}" for number in range(10)]
        for gate in gates:
            recorder.hold(gate)
        waiting = [call("probe.sleep", ms=0, tag=str(number)) for number in range(2)]
        workshop.play(asking(*[call("probe.gate", name=gate) for gate in gates], *waiting))
        run = workshop.submit()
        with workshop.driving(run):
            for gate in gates:
                recorder.await_arrival(gate)
            assert statuses(run)[10:] == [CallStatus.READY, CallStatus.READY]
            workshop.cancel(run)
            for gate in gates:
                recorder.release(gate)
        assert is_cancelled(run)
        assert statuses(run) == [CallStatus.SUCCEEDED] * 10 + [CallStatus.CANCELLED] * 2
        assert [line["code"] for line in payloads(run, "tool_rejected")] == [
            "OPERATION_NOT_ALLOWED"
        ] * 2

    def test_twice_is_recorded_once(self, workshop: Workshop, recorder: Recorder) -> None:
        recorder.hold("slow")
        workshop.play(asking(call("probe.gate", name="slow")))
        run = workshop.submit()
        with workshop.driving(run):
            recorder.await_arrival("slow")
            workshop.cancel(run)
            workshop.cancel(run)
            recorder.release("slow")
        assert event_types(run).count("cancel_requested") == 1
        assert event_types(run).count("run_finished") == 1


class TestCancellingARunOfALostWorker:
    def test_is_completed_by_the_sweeper(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.sleep", ms=0), call("probe.effect", name="a")))
        run = workshop.submit()
        die_while_executing(run)
        workshop.cancel(run)
        assert again(run).status == RunStatus.RUNNING
        lose_worker(run)
        assert is_cancelled(run)
        read, write = calls(run)
        assert (read.status, error_code(read)) == (CallStatus.FAILED, "WORKER_LOST")
        assert write.status == CallStatus.CANCELLED

    def test_leaves_an_interrupted_write_unknown(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        with write_in_flight(workshop, recorder) as run:
            workshop.cancel(run)
            lose_worker(run)
            assert is_cancelled(run)
            assert statuses(run) == [CallStatus.OUTCOME_UNKNOWN]
            recorder.release("a")
        assert is_cancelled(run)
        assert statuses(run) == [CallStatus.SUCCEEDED], "the original executor reports late"

    def test_is_completed_by_the_next_driver_if_the_worker_gave_the_run_back(
        self, workshop: Workshop
    ) -> None:
        run = workshop.submit()
        my_lease = lease.acquire(run.pk)
        assert my_lease is not None
        workshop.cancel(run)
        with pytest.raises(OperationalError), lease.keep_renewing(my_lease):
            raise OperationalError("the database went away")
        eventually(lambda: again(run).status != RunStatus.RUNNING)
        workshop.drive(run)
        assert is_cancelled(run)


class TestACancelledRun:
    def test_cannot_receive_messages_or_be_cancelled_again_or_continued(
        self, workshop: Workshop
    ) -> None:
        run = workshop.submit()
        workshop.cancel(run)
        with pytest.raises(Conflict):
            workshop.cancel(run)
        with pytest.raises(Conflict):
            workshop.say(run)
        with pytest.raises(Conflict):
            actions.continue_run(workshop.operator, run.pk)

    def test_cannot_receive_messages_while_it_is_being_cancelled(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.sleep", ms=0)))
        run = workshop.submit()
        die_while_executing(run)
        workshop.cancel(run)
        with pytest.raises(Conflict):
            workshop.say(run)
        lose_worker(run)

    def test_has_an_answer_that_lists_the_completed_calls(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.sleep", ms=0), call("probe.effect", name="a")))
        run = workshop.cancel(workshop.work())
        assert "Slept 0 ms" in run.answer
        assert run.answer.startswith("Cancelled before Dana answered. So far:")


def test_an_ended_run_cannot_be_cancelled(workshop: Workshop) -> None:
    workshop.play()
    run = workshop.work()
    with pytest.raises(Conflict):
        workshop.cancel(run)
    assert again(run).status == RunStatus.SUCCEEDED


def test_viewers_and_other_organizations_cannot_cancel(workshop: Workshop) -> None:
    run = workshop.submit()
    with pytest.raises(Forbidden):
        actions.cancel(workshop.members["viewer"], run.pk)
    with pytest.raises(NotFound):
        actions.cancel(build_workshop("other").admin, run.pk)
    assert again(run).cancel_requested_at is None


def test_a_closing_answer_after_the_cancellation_is_dropped(
    workshop: Workshop, model: ModelServer
) -> None:
    workshop.allow_passes(1)
    model.script(
        Response(calls=(Call("probe.sleep", {"ms": 0}),)), Response(text="Late.", hold="start")
    )
    run = workshop.submit()
    with workshop.driving(run):
        model.wait_for_held()
        workshop.cancel(run)
        model.release()
    assert is_cancelled(run)
    assert "Late." not in again(run).answer
    assert len(passes(run)) == 1
