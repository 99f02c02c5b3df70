"""Calls of a pass that do not need approval run in parallel, without affecting each other."""

from datetime import timedelta

import pytest
from django.db.models import Max, Min

from agents.runs.models import CallStatus, Event, Run, RunStatus
from tests.features import feature
from tests.model_server import Call, ModelServer, Response
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    again,
    asking,
    call,
    calls,
    error_code,
    event_types,
    eventually,
    payloads,
    statuses,
)

pytestmark = pytest.mark.django_db(transaction=True)


def measure_calls(run: Run) -> timedelta:
    """Return the time from the start of the run's first call to the end of its last, by the
    database's clock."""
    span = run.tool_calls.aggregate(first=Min("started_at"), last=Max("finished_at"))
    duration: timedelta = span["last"] - span["first"]
    return duration


@feature("Execution", "All reads of a pass run in parallel", "agents/runs/engine/execution.py")
@pytest.mark.alone
def test_five_reads_of_200_ms_take_less_than_400_ms_together(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.sleep", ms=0)))
    workshop.work()
    workshop.play(asking(*[call("probe.sleep", ms=200, tag=str(number)) for number in range(5)]))
    run = workshop.work()
    assert statuses(run) == [CallStatus.SUCCEEDED] * 5
    assert timedelta(milliseconds=200) <= measure_calls(run) < timedelta(milliseconds=400)


def test_all_calls_start_before_the_first_has_ended(workshop: Workshop, recorder: Recorder) -> None:
    gates = [f"gate {number}" for number in range(5)]
    for gate in gates:
        recorder.hold(gate)
    workshop.play(asking(*[call("probe.gate", name=gate) for gate in gates]))
    run = workshop.submit()
    with workshop.driving(run):
        for gate in gates:
            recorder.await_arrival(gate)
        assert event_types(run).count("tool_start") == 5
        assert "tool_result" not in event_types(run)
        for gate in gates:
            recorder.release(gate)
    assert again(run).status == RunStatus.SUCCEEDED


def test_a_result_is_published_as_soon_as_it_is_available(
    workshop: Workshop, recorder: Recorder
) -> None:
    recorder.hold("slow")
    workshop.play(asking(call("probe.gate", name="slow"), call("probe.sleep", ms=0)))
    run = workshop.submit()
    with workshop.driving(run):
        eventually(lambda: statuses(run) == [CallStatus.EXECUTING, CallStatus.SUCCEEDED])
        recorder.release("slow")
    tools = [line["tool"] for line in payloads(run, "tool_result")]
    assert tools == ["probe.sleep", "probe.gate"]


def test_failing_and_hanging_calls_do_not_affect_other_calls(workshop: Workshop) -> None:
    workshop.play(
        asking(
            call("probe.fail"),
            call("probe.hang", name="a"),
            call("probe.sleep", ms=10),
            call("probe.fail", code="NOT_FOUND"),
            call("utility.calculate", operation="add", a=1, b=2),
        )
    )
    run = workshop.work()
    broken, hung, slept, missing, added = calls(run)
    assert (broken.status, error_code(broken)) == (CallStatus.FAILED, "TOOL_EXECUTION_FAILED")
    assert (hung.status, error_code(hung)) == (CallStatus.FAILED, "TIMEOUT")
    assert (missing.status, error_code(missing)) == (CallStatus.FAILED, "NOT_FOUND")
    assert (slept.status, added.status) == (CallStatus.SUCCEEDED, CallStatus.SUCCEEDED)
    assert run.status == RunStatus.SUCCEEDED
    assert measure_calls(run) < timedelta(seconds=5)


def test_events_and_results_never_contain_the_text_of_an_exception(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.fail")))
    run = workshop.work()
    assert "hunter2" not in str(
        list(Event.objects.filter(run=run).values_list("payload", flat=True))
    )
    assert "hunter2" not in str(calls(run)[0].result) + calls(run)[0].content


def test_the_model_reads_results_in_the_order_of_the_calls(
    workshop: Workshop, model: ModelServer
) -> None:
    asked = (
        Call("probe.sleep", {"ms": 60, "tag": "a"}, id="slow"),
        Call("probe.sleep", {"ms": 0}, id="quick"),
    )
    model.script(Response(calls=asked), Response(text="Done."))
    run = workshop.work()
    assert [line["call_id"] for line in payloads(run, "tool_result")] == [
        str(row.pk) for row in reversed(calls(run))
    ]
    ids = [
        message["tool_call_id"]
        for message in model.requests[1]["messages"]
        if message["role"] == "tool"
    ]
    assert ids == ["slow", "quick"]


@feature(
    "Execution",
    "A limit of parallel calls; the rest start as slots become free",
    "agents/runs/engine/execution.py",
)
def test_at_most_ten_calls_run_at_a_time_and_the_rest_start_as_slots_free_up(
    workshop: Workshop, recorder: Recorder
) -> None:
    gates = [f"gate {number}" for number in range(10)]
    for gate in gates:
        recorder.hold(gate)
    rest = [call("probe.sleep", ms=0, tag=str(number)) for number in range(15)]
    workshop.play(asking(*[call("probe.gate", name=gate) for gate in gates], *rest))
    run = workshop.submit()
    with workshop.driving(run):
        for gate in gates:
            recorder.await_arrival(gate)
        assert statuses(run) == [CallStatus.EXECUTING] * 10 + [CallStatus.READY] * 15
        recorder.release(gates[0])
        eventually(lambda: statuses(run)[10:] == [CallStatus.SUCCEEDED] * 15)
        assert statuses(run)[1:10] == [CallStatus.EXECUTING] * 9
        for gate in gates:
            recorder.release(gate)
    assert statuses(run) == [CallStatus.SUCCEEDED] * 25


@feature("Tool contract", "Live progress while a call runs", "tools/toolbox/executor.py")
def test_progress_is_published_between_start_and_result(
    workshop: Workshop, recorder: Recorder
) -> None:
    recorder.hold("half way")
    workshop.play(asking(call("probe.progress", gate="half way")))
    run = workshop.submit()
    with workshop.driving(run):
        eventually(lambda: "tool_progress" in event_types(run))
        recorder.release("half way")
    assert payloads(run, "tool_progress") == [
        {"call_id": str(calls(run)[0].pk), "fraction": 0.5, "text": "half"}
    ]
    lines = [line for line in event_types(run) if line.startswith("tool_")]
    assert lines == ["tool_start", "tool_progress", "tool_result"]


def test_a_write_publishes_its_progress(workshop: Workshop, recorder: Recorder) -> None:
    recorder.hold("door")
    workshop.play(asking(call("probe.knock", name="door")))
    run = workshop.work()
    workshop.approve(workshop.card(run))
    with workshop.driving(run):
        eventually(lambda: "tool_progress" in event_types(run))
        recorder.release("door")
    assert again(run).status == RunStatus.SUCCEEDED


def test_reads_run_while_a_write_of_the_same_pass_waits(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.effect", name="a"), call("probe.sleep", ms=0)))
    run = workshop.work()
    assert (run.status, statuses(run)) == (
        RunStatus.WAITING,
        [CallStatus.AWAITING_APPROVAL, CallStatus.SUCCEEDED],
    )


@feature(
    "Tool contract",
    "Summary in the panel while a call runs; if the summary fails, the call still runs",
    "agents/runs/engine/requested_calls.py",
)
def test_a_tool_whose_summary_fails_still_runs(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.tongueTied")))
    run = workshop.work()
    assert statuses(run) == [CallStatus.SUCCEEDED]
    assert payloads(run, "tool_start")[0]["summary"] == "probe.tongueTied"
