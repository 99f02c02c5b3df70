"""An incomplete response is never treated as complete: the run reports it, and requests it again
only if that can help."""

from __future__ import annotations

import pytest

from agents.runs.models import ExitReason, RunStatus
from tests.model_server import Call, ModelServer, Response
from tests.workshop import Workshop, event_types, make_due, passes, payloads

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("finish", "reason", "words"),
    [
        ("length", ExitReason.ANSWER_CUT, "length limit"),
        ("max_tokens", ExitReason.ANSWER_CUT, "length limit"),
        ("content_filter", ExitReason.ANSWER_FILTERED, "content filter"),
        ("SAFETY", ExitReason.ANSWER_FILTERED, "content filter"),
    ],
)
def test_the_text_of_an_incomplete_response_is_stored_and_the_run_fails(
    workshop: Workshop, model: ModelServer, finish: str, reason: ExitReason, words: str
) -> None:
    model.script(Response(text="The three largest are Acme, Ini", finish=finish))
    run = workshop.work()
    assert (run.status, run.exit_reason) == (RunStatus.FAILED, reason)
    assert run.answer == "The three largest are Acme, Ini"
    assert words in run.problem
    assert [line["pass_number"] for line in payloads(run, "answer_cut")] == [1]
    assert payloads(run, "run_finished")[0]["exit_reason"] == reason
    assert len(model.requests) == 1


def test_an_incomplete_response_with_calls_is_published_and_the_run_continues(
    workshop: Workshop, model: ModelServer
) -> None:
    sleep = Call("probe.sleep", {"ms": 0})
    model.script(Response(text="First I", calls=(sleep,), finish="length"), Response(text="Done."))
    run = workshop.work()
    assert (run.status, run.answer) == (RunStatus.SUCCEEDED, "Done.")
    assert [each.cut_off for each in passes(run)] == ["length", ""]
    assert event_types(run).count("answer_cut") == 1


def test_an_empty_response_is_requested_once_more(workshop: Workshop, model: ModelServer) -> None:
    model.enqueue(Response(finish="length"), Response(text="Short enough."))
    run = workshop.work()
    assert (run.status, run.problem.partition(":")[0]) == (RunStatus.QUEUED, "answer_cut")
    run = workshop.drive(make_due(run))
    assert (run.status, run.answer) == (RunStatus.SUCCEEDED, "Short enough.")


@pytest.mark.parametrize(
    ("answer", "tries"),
    [
        (Response(finish="length"), 2),
        (Response(finish="malformed_function_call"), 3),
        (Response(finish="error"), 3),
        (Response(events=({"choices": [{"index": 0, "delta": {}, "error": {"code": 502}}]},)), 3),
    ],
)
def test_a_useless_response_is_requested_again_a_limited_number_of_times(
    workshop: Workshop, model: ModelServer, answer: Response, tries: int
) -> None:
    model.script(answer)
    run = workshop.work()
    for _ in range(tries - 1):
        assert run.status == RunStatus.QUEUED
        run = workshop.drive(make_due(run))
    assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.ANSWER_CUT)
    assert len(model.requests) == tries
    assert (
        f"The employee gave no answer: answer cut off. {run.problem.rstrip('.')}. Nothing was done."
        == run.answer
    )
    assert run.input_tokens > 0, "these answers count toward the budgets"


def test_a_filtered_response_is_not_requested_again(workshop: Workshop, model: ModelServer) -> None:
    model.script(Response(finish="content_filter"))
    run = workshop.work()
    assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.ANSWER_FILTERED)
    assert len(model.requests) == 1
    assert run.input_tokens == 100


def test_an_incomplete_closing_response_fails_the_run(
    workshop: Workshop, model: ModelServer
) -> None:
    workshop.allow_passes(1)
    model.script(
        Response(calls=(Call("probe.sleep", {"ms": 0}),)),
        Response(text="That is wh", finish="length"),
    )
    run = workshop.work()
    assert (run.status, run.exit_reason, run.answer) == (
        RunStatus.FAILED,
        ExitReason.ANSWER_CUT,
        "That is wh",
    )
