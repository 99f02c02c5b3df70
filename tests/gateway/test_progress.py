"""The data that a request reads while it waits for a call: the status of the call, and the progress
of its run."""

from __future__ import annotations

from agents.gateway.models import AgentKey
from agents.gateway.queries import list_progress, read_statuses
from agents.gateway.sessions import find_or_create_session
from agents.runs.models import CallStatus, Event, EventType
from tests.gateway.test_requests import EFFECT, request


def test_only_statuses_of_the_awaited_calls_are_read(key: AgentKey) -> None:
    one, two, _ = (request(key, EFFECT, name=name) for name in "abc")
    assert read_statuses({one.pk, two.pk}) == dict.fromkeys(
        (one.pk, two.pk), CallStatus.AWAITING_APPROVAL
    )


def test_only_new_progress_of_the_run_is_read(key: AgentKey) -> None:
    run, other = (
        request(key, EFFECT, find_or_create_session(key, name), name=name).run for name in "ab"
    )
    added = [
        Event.objects.create(run=each, seq=number, type=type_, payload={"number": number})
        for each, number, type_ in (
            (run, 101, EventType.TOOL_PROGRESS),
            (run, 102, EventType.TOOL_PROGRESS),
            (run, 103, EventType.TOOL_START),
            (other, 104, EventType.TOOL_PROGRESS),
        )
    ]
    assert list_progress(run.pk, 101) == [(102, {"number": 102})]
    Event.objects.filter(pk__in=[each.pk for each in added]).delete()
