"""A response whose pass cannot be recorded is stored with its run, so that it is requested only
once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import DatabaseError, connection

from agents.runs.models import Run, RunStatus
from tests.features import feature
from tests.model_server import Call, ModelServer, Response
from tests.workshop import Workshop, again, make_due, passes

_REFUSE = {
    "sqlite": (
        "CREATE TRIGGER refuse_passes BEFORE INSERT ON runs_pass BEGIN SELECT RAISE(ABORT, 'no'); END",
        "DROP TRIGGER refuse_passes",
    ),
    "postgresql": (
        """
        CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'no'; END $$ LANGUAGE plpgsql;
        CREATE TRIGGER refuse_passes BEFORE INSERT ON runs_pass EXECUTE FUNCTION refuse()
        """,
        "DROP TRIGGER refuse_passes ON runs_pass; DROP FUNCTION refuse",
    ),
}


@contextmanager
def refusing_passes() -> Iterator[None]:
    """Let the database refuse every new pass during the block."""
    refuse, allow = _REFUSE[connection.vendor]
    _execute(refuse)
    try:
        yield
    finally:
        _execute(allow)


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def fail_twice(workshop: Workshop, run: Run) -> Run:
    """Let two drivers fail to record the run's pass."""
    with refusing_passes():
        for _ in range(2):
            with pytest.raises(DatabaseError):
                workshop.drive(run)
            run = make_due(run)
    return run


@feature(
    "Plugins",
    "The response of a pass that cannot be recorded is paid for once",
    "agents/runs/engine/kept_responses.py",
)
def test_a_stored_response_is_recorded_without_another_request(
    workshop: Workshop, model: ModelServer
) -> None:
    model.script(
        Response(calls=(Call("probe.effect", {"name": "a"}),), text="First."),
        Response(text="Done."),
    )
    run = fail_twice(workshop, workshop.submit())
    assert (run.status, len(model.requests), passes(run)) == (RunStatus.QUEUED, 1, [])
    spent = (run.input_tokens, run.output_tokens)
    assert sum(spent) > 0
    run = workshop.drive(run)
    assert (run.status, run.kept_answer, len(model.requests)) == (RunStatus.WAITING, None, 1)
    (recorded,) = passes(run)
    assert (recorded.text, recorded.input_tokens, recorded.output_tokens) == ("First.", *spent)
    assert (run.input_tokens, run.output_tokens) == spent
    workshop.deny(workshop.card(run))
    assert workshop.drive(make_due(run)).answer == "Done."


def lose_grants(workshop: Workshop, model: ModelServer, run: Run) -> None:
    """Drive the run; its employee's permissions become unreadable once the model has responded."""
    try:
        with workshop.driving(run):
            model.wait_for_held()
            _execute("ALTER TABLE employees_grant RENAME TO lost_grant")
            model.release()
    finally:
        _execute("ALTER TABLE lost_grant RENAME TO employees_grant")


def test_a_response_whose_calls_could_not_be_judged_is_stored(
    workshop: Workshop, model: ModelServer
) -> None:
    model.enqueue(
        Response(calls=(Call("probe.effect", {"name": "a"}),), text="First.", hold="middle")
    )
    run = workshop.submit()
    with pytest.raises(DatabaseError):
        lose_grants(workshop, model, run)
    run = workshop.drive(make_due(run))
    assert (run.status, len(model.requests)) == (RunStatus.WAITING, 1)
    (recorded,) = passes(run)
    assert (run.input_tokens, run.output_tokens) == (recorded.input_tokens, recorded.output_tokens)


def test_the_usage_of_an_unrecorded_response_is_counted(
    workshop: Workshop, model: ModelServer
) -> None:
    model.script(Response(text="Done."))
    run = fail_twice(workshop, workshop.submit())
    run = workshop.cancel(run)
    assert (run.status, run.input_tokens > 0) == (RunStatus.CANCELLED, True)


def test_a_message_is_read_after_the_stored_response(
    workshop: Workshop, model: ModelServer
) -> None:
    model.script(Response(text="Done."), Response(text="Done again."))
    run = fail_twice(workshop, workshop.submit())
    workshop.say(run, "And one more thing.")
    run = workshop.drive(again(run))
    assert (run.status, run.answer, len(model.requests)) == (RunStatus.SUCCEEDED, "Done again.", 2)
    assert [each.messages_upto for each in passes(run)] == [1, 2]
    assert model.requests[-1]["messages"][-1]["content"] == "And one more thing."


def test_the_response_of_a_recorded_pass_is_not_stored_separately(
    workshop: Workshop, model: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    model.script(Response(calls=(Call("probe.sleep", {"ms": 0}),)), Response(text="Done."))
    run = workshop.work()
    assert (run.status, run.kept_answer) == (RunStatus.SUCCEEDED, None)
    assert run.input_tokens == sum(each.input_tokens for each in passes(run))
    assert "the response is kept" not in caplog.text
