"""The next driver settles a lost worker's calls: recorded passes are not requested again, and
writes never start twice."""

import pytest

from agents.runs.engine import lease
from agents.runs.models import CallStatus, ExitReason, Run, RunStatus, ToolCall
from tests.model_server import Call, ModelServer, Response
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    again,
    asking,
    call,
    calls,
    die_while_executing,
    error_code,
    event_types,
    lose_worker,
    make_due,
    passes,
    payloads,
    statuses,
    write_in_flight,
)

pytestmark = pytest.mark.django_db(transaction=True)

SLEEP = call("probe.sleep", ms=0)


class TestALostLease:
    def test_queues_the_run_and_counts_the_crash(self, workshop: Workshop) -> None:
        run = workshop.submit()
        assert lease.acquire(run.pk) is not None
        run = lose_worker(run)
        assert (run.status, run.crash_count, run.lease_owner) == (RunStatus.QUEUED, 1, "")

    def test_publishes_an_event_that_says_another_worker_continues(
        self, workshop: Workshop
    ) -> None:
        run = workshop.submit()
        assert lease.acquire(run.pk) is not None
        run = lose_worker(run)
        assert payloads(run, "run_resumed") == [
            {"by": "gadget", "reason": "The worker was lost; another one continues."}
        ]

    def test_requests_the_response_again_if_it_was_not_recorded(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.script(Response(text="Done.", hold="start"), Response(text="Done."))
        run = workshop.submit()
        with workshop.driving(run):
            model.wait_for_held()
            run = lose_worker(run)
            model.script(Response(text="Done."))
            run = workshop.drive(run)
            model.release()
        run = again(run)
        assert (run.status, len(model.requests), len(passes(run))) == (RunStatus.SUCCEEDED, 2, 1)
        assert event_types(run).count("pass_started") == 1

    def test_never_requests_a_recorded_pass_again(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.script(Response(calls=(Call("probe.sleep", {"ms": 0}),)), Response(text="Done."))
        run = workshop.submit()
        die_while_executing(run)
        run = workshop.drive(lose_worker(run))
        assert run.status == RunStatus.SUCCEEDED
        assert len(model.requests) == 2
        assert [each.number for each in passes(run)] == [1, 2]

    def test_resets_the_crash_count_when_a_pass_or_a_result_is_recorded(
        self, workshop: Workshop
    ) -> None:
        workshop.play(asking(SLEEP, call("probe.effect", name="a")))
        run = workshop.submit()
        Run.objects.filter(pk=run.pk).update(crash_count=3)
        die_while_executing(run)
        assert again(run).crash_count == 0, "a pass was recorded"
        Run.objects.filter(pk=run.pk).update(crash_count=3)
        run = lose_worker(run)
        assert run.crash_count == 4
        assert workshop.drive(run).crash_count == 0, "a result was recorded"

    def test_ends_the_run_if_it_occurs_five_times_in_a_row(self, workshop: Workshop) -> None:
        workshop.play(asking(SLEEP))
        run = workshop.submit()
        for crashes in range(1, 5):
            assert lease.acquire(run.pk) is not None
            run = lose_worker(run)
            assert (run.status, run.crash_count) == (RunStatus.QUEUED, crashes)
        assert lease.acquire(run.pk) is not None
        run = lose_worker(run)
        assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.CRASH_LOOP)
        assert payloads(run, "run_finished")[0]["exit_reason"] == "crash_loop"


class TestAnInterruptedRead:
    def test_runs_again(self, workshop: Workshop) -> None:
        workshop.play(asking(SLEEP))
        run = workshop.submit()
        die_while_executing(run)
        assert statuses(run) == [CallStatus.EXECUTING]
        run = workshop.drive(lose_worker(run))
        (row,) = calls(run)
        assert (run.status, row.status, row.attempts) == (
            RunStatus.SUCCEEDED,
            CallStatus.SUCCEEDED,
            2,
        )
        assert payloads(run, "run_resumed")[0]["reason"].endswith(
            "another one continues. Repeated: probe.sleep."
        )
        assert event_types(run).count("tool_start") == 2
        assert event_types(run).count("tool_result") == 1

    def test_of_another_run_is_left_to_its_own_worker(self, workshop: Workshop) -> None:
        workshop.play(asking(SLEEP))
        first, second = workshop.submit(), workshop.submit()
        lease.give_back(die_while_executing(first))
        die_while_executing(second)
        assert workshop.drive(make_due(first)).status == RunStatus.SUCCEEDED
        assert statuses(second) == [CallStatus.EXECUTING]
        lose_worker(second)

    def test_fails_after_three_attempts(self, workshop: Workshop) -> None:
        workshop.play(asking(SLEEP))
        run = workshop.submit()
        die_while_executing(run)
        ToolCall.objects.filter(run=run).update(attempts=3)
        run = workshop.drive(lose_worker(run))
        (row,) = calls(run)
        assert (row.status, error_code(row), row.attempts) == (CallStatus.FAILED, "WORKER_LOST", 3)
        assert "TOOL ERROR: WORKER_LOST" in row.content
        assert run.status == RunStatus.SUCCEEDED

    def test_keeps_its_idempotency_key_for_the_next_attempt(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.draw", name="a")))
        run = workshop.submit()
        die_while_executing(run)
        (before,) = calls(run)
        lose_worker(run)
        my_lease = lease.acquire(run.pk)
        assert my_lease is not None
        (after,) = calls(run)
        assert before.idempotency_key == after.idempotency_key
        lose_worker(run)

    def test_ends_when_the_run_is_ended_for_its_crashes(self, workshop: Workshop) -> None:
        workshop.play(asking(SLEEP, call("probe.effect", name="a")))
        run = workshop.submit()
        die_while_executing(run)
        Run.objects.filter(pk=run.pk).update(crash_count=4)
        run = lose_worker(run)
        assert run.exit_reason == ExitReason.CRASH_LOOP
        read, write = calls(run)
        assert (read.status, error_code(read)) == (CallStatus.FAILED, "WORKER_LOST")
        assert write.status == CallStatus.CANCELLED
        assert not workshop.cards(run)

    def test_that_ends_after_its_worker_was_lost_does_not_record_a_result(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        recorder.hold("slow")
        workshop.play(asking(call("probe.gate", name="slow")))
        run = workshop.submit()
        with workshop.driving(run):
            recorder.await_arrival("slow")
            lose_worker(run)
            my_lease = lease.acquire(run.pk)
            assert my_lease is not None
            recorder.release("slow")
        assert statuses(run) == [CallStatus.EXECUTING], "the old driver recorded nothing"
        assert "tool_result" not in event_types(run)
        run = workshop.drive(lose_worker(run))
        assert (run.status, calls(run)[0].attempts) == (RunStatus.SUCCEEDED, 2)


class TestAnInterruptedWrite:
    def test_is_never_started_again_and_needs_attention(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        with write_in_flight(workshop, recorder) as run:
            assert workshop.drive(lose_worker(run)).status == RunStatus.NEEDS_ATTENTION
            (row,) = calls(run)
            assert (row.status, row.attempts) == (CallStatus.OUTCOME_UNKNOWN, 1)
            reason = payloads(run, "run_resumed")[-1]["reason"]
            assert reason.endswith("Outcome unknown, so not repeated automatically: probe.effect.")
            workshop.resolve(row, "succeeded")
            assert workshop.drive(run).status == RunStatus.SUCCEEDED
            recorder.release("a")
        assert list(recorder.effects.values()) == [1]

    def test_needs_attention_before_the_run_fails_for_its_crashes(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        recorder.hold("a")
        workshop.play(asking(call("probe.effect", name="a"), call("probe.effect", name="b")))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        with workshop.driving(run):
            recorder.await_arrival("a")
            Run.objects.filter(pk=run.pk).update(crash_count=4)
            run = lose_worker(run)
            assert run.status == RunStatus.NEEDS_ATTENTION
            assert statuses(run) == [CallStatus.OUTCOME_UNKNOWN, CallStatus.CANCELLED]
            workshop.resolve(calls(run)[0], "not_done")
            run = workshop.drive(run)
            recorder.release("a")
        assert (again(run).status, again(run).exit_reason) == (
            RunStatus.FAILED,
            ExitReason.CRASH_LOOP,
        )

    def test_lets_reads_of_the_same_pass_run_again_first(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        with write_in_flight(workshop, recorder) as run:
            lose_worker(run)
            (write,) = calls(run)
            write.pk, write.index, write.provider_call_id, write.idempotency_key = (
                None,
                1,
                "left",
                "left-by-a-lost-one",
            )
            write.tool, write.level, write.params = "probe.sleep", "read", {"ms": 0, "tag": ""}
            write.save(force_insert=True)
            run_status = workshop.drive(run).status
            assert statuses(run) == [CallStatus.OUTCOME_UNKNOWN, CallStatus.SUCCEEDED]
            assert run_status == RunStatus.NEEDS_ATTENTION
            ToolCall.objects.filter(pk=write.pk).delete()
            recorder.release("a")


class TestAnUnstartedCall:
    def test_runs_with_the_next_worker(self, workshop: Workshop, recorder: Recorder) -> None:
        workshop.play(asking(call("probe.effect", name="a")))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        assert lease.acquire(run.pk) is not None
        run = workshop.drive(lose_worker(run))
        assert run.status == RunStatus.SUCCEEDED
        assert list(recorder.effects.values()) == [1]

    def test_is_judged_again_before_it_starts(self, workshop: Workshop) -> None:
        workshop.play(asking(*[call("probe.sleep", ms=0, tag=str(number)) for number in range(12)]))
        run = workshop.submit()
        die_while_executing(run)
        workshop.employee.grants.filter(tool="probe.sleep").delete()
        run = workshop.drive(lose_worker(run))
        assert set(statuses(run)) == {CallStatus.REJECTED}
        assert {error_code(row) for row in calls(run)} == {"NOT_PERMITTED"}
