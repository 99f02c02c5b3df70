"""Sessions: the run to which the calls of a session are added, and the end of the session."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from agents.gateway.asks import AskedRequest, submit
from agents.gateway.models import AgentKey, AgentRun, AgentSession
from agents.gateway.queries import MAX_CALLS_OF_A_RUN
from agents.gateway.sessions import (
    end_resting_run,
    end_session,
    find_or_create_session,
    find_or_start_run,
    has_ended,
)
from agents.gateway.tickets import find_ticket, load_ticket
from agents.runs.models import CallStatus, ExitReason, Origin, Run, RunStatus, ToolCall
from agents.worker.sweeper import sweep_once
from tests.features import feature
from tests.gateway.conftest import make_key
from tests.gateway.test_requests import EFFECT, SEARCH, request, update
from tests.workshop import LONG_AGO, Workshop, again
from tools.contract import Level


def test_a_run_ends_after_a_period_without_requests(workshop: Workshop, key: AgentKey) -> None:
    run = workshop.drive(request(key, SEARCH).run)
    sweep_once()
    assert again(run).status == RunStatus.WAITING
    Run.objects.update(next_wake_at=Now() - LONG_AGO)
    sweep_once()
    ended = again(run)
    assert (ended.status, ended.exit_reason) == (RunStatus.SUCCEEDED, ExitReason.SESSION_ENDED)
    assert ended.answer == "The session ended. It made 1 call."
    assert request(key, SEARCH).run_id != run.pk, "the next request starts another run"
    workshop.drive(Run.objects.latest("pk"))


@feature(
    "Agents elsewhere",
    "A run rests between requests without a worker, and never ends while a ticket is open",
    "agents/gateway/sessions.py",
)
def test_a_run_with_an_open_ticket_does_not_end_by_timeout(
    workshop: Workshop, key: AgentKey
) -> None:
    run = update(workshop, key).run
    past = Now() - LONG_AGO
    Run.objects.update(created_at=past, started_at=past, next_wake_at=past)
    sweep_once()
    assert again(run).status == RunStatus.WAITING
    assert not end_resting_run(run.pk, is_idle=False)


def test_a_resting_run_ends_before_its_timeout_only_if_its_client_leaves(
    workshop: Workshop, key: AgentKey
) -> None:
    run = workshop.drive(request(key, SEARCH).run)
    assert not end_resting_run(run.pk)
    request(key, SEARCH)
    workshop.drive(run)
    assert end_resting_run(run.pk, is_idle=False), "unless its client leaves"
    assert again(run).answer == "The session ended. It made 2 calls."


def test_each_session_has_its_own_run(workshop: Workshop, key: AgentKey) -> None:
    one, two = (find_or_create_session(key, name) for name in ("one", "two"))
    first, second, third = (request(key, SEARCH, session) for session in (one, two, None))
    assert len({first.run_id, second.run_id, third.run_id}) == 3
    assert request(key, SEARCH, one).run_id == first.run_id
    for run in Run.objects.all():
        workshop.drive(run)


def test_a_client_can_end_its_own_session(workshop: Workshop, key: AgentKey) -> None:
    one, two = (find_or_create_session(key, name) for name in ("one", "two"))
    runs = [workshop.drive(request(key, SEARCH, session).run) for session in (one, two)]
    end_session(one)
    assert [again(run).status for run in runs] == [RunStatus.SUCCEEDED, RunStatus.WAITING]
    assert [has_ended(key, name) for name in ("one", "two", "three")] == [True, False, False]
    ended_at = AgentSession.objects.get(pk=one.pk).ended_at
    end_session(one)
    assert AgentSession.objects.get(pk=one.pk).ended_at == ended_at
    end_session(two)
    assert has_ended(key, "two")
    assert not has_ended(make_key(workshop, name="Server"), "two")


def test_only_a_resting_run_of_an_agents_session_ends_by_timeout(
    workshop: Workshop, key: AgentKey
) -> None:
    open_elsewhere = update(workshop, key)
    run = workshop.drive(request(key, SEARCH, find_or_create_session(key, "one")).run)
    rows = Run.objects.filter(pk=run.pk)
    for change, before in (
        ({"origin": Origin.ASK}, {"origin": Origin.MCP}),
        ({"status": "queued"}, {"status": "waiting"}),
    ):
        rows.update(next_wake_at=Now() - LONG_AGO, **change)
        assert not end_resting_run(run.pk)
        rows.update(**before)
    assert end_resting_run(run.pk)
    assert again(run).answer == "The session ended. It made 1 call."
    assert not load_ticket(open_elsewhere.pk).has_ended


def test_open_calls_outlive_their_session(workshop: Workshop, key: AgentKey) -> None:
    session = find_or_create_session(key, "one")
    call = request(key, EFFECT, session, name="a")
    end_session(session)
    assert load_ticket(call.pk).status == "waiting_for_approval"
    assert find_ticket(key, f"t-{call.pk}").call.pk == call.pk, (
        "another session of the key can fetch it"
    )


def test_a_long_session_continues_in_another_run(workshop: Workshop, key: AgentKey) -> None:
    run = workshop.drive(request(key, SEARCH).run)
    Run.objects.filter(pk=run.pk).update(pass_number=MAX_CALLS_OF_A_RUN)
    after = request(key, SEARCH)
    assert after.run_id != run.pk
    workshop.drive(after.run)
    Run.objects.filter(pk=run.pk).update(pass_number=1)


def test_a_cancelled_run_accepts_no_more_calls(workshop: Workshop, key: AgentKey) -> None:
    call = update(workshop, key)
    workshop.cancel(call.run)
    assert load_ticket(call.pk).call.status == CallStatus.CANCELLED
    assert update(workshop, key).run_id != call.run_id


@pytest.mark.parametrize(
    ("level", "status", "takes_more"),
    [
        (Level.READ, CallStatus.EXECUTING, True),
        (Level.WRITE, CallStatus.EXECUTING, False),
        (Level.DESTRUCTIVE, CallStatus.APPROVED, False),
        (Level.WRITE, CallStatus.AWAITING_APPROVAL, True),
    ],
)
def test_a_run_accepts_more_calls_unless_a_write_is_approved_or_running(
    key: AgentKey, level: Level, status: CallStatus, *, takes_more: bool
) -> None:
    sessions = [find_or_create_session(key, name) for name in ("one", "two")]
    calls = [request(key, EFFECT, session, name=session.session_id) for session in sessions]
    at_work = ToolCall.objects.filter(pk=calls[0].pk)
    at_work.update(
        status=status, level=level.value, exec_epoch=1, deadline_at=Now() + timedelta(days=1)
    )
    assert find_or_start_run(key, sessions[1]) == calls[1].run_id, (
        "another run's calls are its own affair"
    )
    assert (find_or_start_run(key, sessions[0]) == calls[0].run_id) is takes_more
    at_work.update(status=CallStatus.APPROVED)  # no worker executes it


def test_a_run_being_cancelled_accepts_no_more_calls(key: AgentKey) -> None:
    run = request(key, EFFECT, name="a").run
    Run.objects.filter(pk=run.pk).update(cancel_requested_at=Now())
    assert find_or_start_run(key, None) != run.pk


def test_the_run_of_an_ask_accepts_no_calls(key: AgentKey) -> None:
    asked, _ = submit(key, AskedRequest("deploy", {}, "write"))
    assert find_or_start_run(key, None) != asked.run_id


def test_a_call_is_added_to_the_run_of_its_session_and_not_to_the_newest_run(key: AgentKey) -> None:
    sessions = [
        None,
        find_or_create_session(key, "one"),
        None,
        find_or_create_session(key, "two"),
        None,
    ]
    runs = [find_or_start_run(key, session) for session in sessions]
    assert len(set(runs)) == 3
    assert runs[0] == runs[2] == runs[4]


def test_keys_never_share_a_run(workshop: Workshop, key: AgentKey) -> None:
    other = make_key(workshop, name="Server")
    runs = [workshop.drive(request(each, SEARCH).run) for each in (key, other)]
    assert runs[0].pk != runs[1].pk
    assert {each.key_id for each in AgentRun.objects.all()} == {key.pk, other.pk}
