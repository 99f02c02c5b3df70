"""The list of runs, and the page of one: every event as a line, each call once, as it is now."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.template.loader import get_template
from django.test import Client

from agents.desk.panel import folded, lines_of, table_of
from agents.models import CallStatus, Event, EventType, Run, RunStatus
from tests.web.world import World, make_world, success

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    return make_world()


def text_of(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def add_events(run: Run, *events: tuple[EventType, dict[str, Any]]) -> list[Event]:
    first = run.next_event_seq
    rows = [
        Event(run=run, seq=first + place, type=type_, payload=payload) for place, (type_, payload) in enumerate(events)
    ]
    Event.objects.bulk_create(rows)
    run.next_event_seq = first + len(rows)
    run.save()
    return list(run.events.order_by("seq"))


def started(call: Any) -> tuple[EventType, dict[str, Any]]:
    payload = {"call_id": str(call.pk), "tool": call.tool, "display_name": "Search", "level": "read", "params": {}}
    return EventType.TOOL_START, {**payload, "summary": "Searching…", "pass_number": 1}


def ended(call: Any, **result: Any) -> tuple[EventType, dict[str, Any]]:
    whole = success(None, summary="Found 47 records", **result)
    return EventType.TOOL_RESULT, {"call_id": str(call.pk), "tool": call.tool, "result": whole, "duration_ms": 12}


@pytest.mark.parametrize("type_", EventType.values)
def test_every_kind_of_event_has_its_fragment(type_: str) -> None:
    assert get_template(f"activity/{type_}.html")


def test_every_kind_of_event_renders_as_one_line(world: World) -> None:
    card = world.card()
    call = str(card.tool_call_id)
    payloads: dict[EventType, dict[str, Any]] = {
        EventType.RUN_STARTED: {"by": "operator"},
        EventType.RUN_TITLED: {"title": "T"},
        EventType.PASS_STARTED: {"pass_number": 1},
        EventType.ASSISTANT_MESSAGE: {"text": "Hello **you**", "pass_number": 1},
        EventType.TOOL_START: started(card.tool_call)[1],
        EventType.TOOL_PROGRESS: {"call_id": call, "fraction": 0.5, "text": "half"},
        EventType.TOOL_RESULT: ended(card.tool_call)[1],
        EventType.TOOL_SKIPPED: {"call_id": call, "tool": "x", "duplicate_of": call},
        EventType.TOOL_REJECTED: {"call_id": call, "tool": "x", "code": "NOT_PERMITTED", "reason": "no"},
        EventType.APPROVAL_REQUESTED: {"call_id": call, "approval_id": str(card.pk)},
        EventType.APPROVAL_DECIDED: {
            "call_id": call,
            "approval_id": str(card.pk),
            "status": "denied",
            "decided_by": "a",
        },
        EventType.QUESTION_ASKED: {"approval_id": "1", "text": "Which?"},
        EventType.QUESTION_ANSWERED: {"approval_id": "1", "text": "That.", "by": "a"},
        EventType.MESSAGE_ADDED: {"text": "More", "by": "a"},
        EventType.RUN_WAITING: {"approval_ids": ["1"]},
        EventType.RUN_RESUMED: {},
        EventType.RUN_NEEDS_ATTENTION: {"approval_ids": ["1"]},
        EventType.CALL_RESOLVED: {"call_id": call, "outcome": "succeeded", "by": "a", "reason": "seen"},
        EventType.CANCEL_REQUESTED: {"by": "a"},
        EventType.PROVIDER_DELAYED: {
            "code": "RATE_LIMITED",
            "reason": "Later.",
            "tries": 1,
            "retry_at": "2030-01-01T00:00:00Z",
        },
        EventType.RUN_FINISHED: {"status": "succeeded", "exit_reason": "final_answer", "answer": "Done"},
    }
    assert payloads.keys() == set(EventType)
    for line in lines_of(card.run_id, add_events(card.run, *payloads.items())):
        assert line.html.startswith("<li "), line
        assert line.html.count("<li ") == 1, line
        assert line.html.endswith("</li>"), line


def test_a_call_is_one_line_that_moves_on(world: World) -> None:
    run = world.run(RunStatus.RUNNING, lease_owner="w", lease_expires_at="2030-01-01T00:00:00Z")
    first, second = (
        world.call(run),
        world.call(
            run,
            status=CallStatus.EXECUTING,
            finished_at=None,
            exec_epoch=1,
            content="",
            deadline_at="2030-01-01T00:00:00Z",
        ),
    )
    events = add_events(run, started(first), started(second), ended(first))
    assert [event.type for event in folded(events)] == ["tool_result", "tool_start"]
    html = text_of(world.client("viewer"), f"/runs/{run.pk}/")
    assert html.count(f'id="call-{first.pk}"') == html.count(f'id="call-{second.pk}"') == 1
    assert html.count('class="spinner"') == 1
    assert "Found 47 records" in html
    assert 'data-after="3"' in html


def test_the_page_shows_what_the_socket_sends(world: World) -> None:
    run = world.run()
    events = add_events(
        run, started(world.call(run)), (EventType.MESSAGE_ADDED, {"text": "<b>hi</b>", "by": "operator"})
    )
    page = text_of(world.client("viewer"), f"/runs/{run.pk}/")
    for line in lines_of(run.pk, events):
        assert line.html in page
    assert "<b>hi</b>" not in page


def test_the_answer_stands_there_once(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED)
    says = (EventType.ASSISTANT_MESSAGE, {"text": "All done.", "pass_number": 1})
    ends = (EventType.RUN_FINISHED, {"status": "succeeded", "exit_reason": "final_answer", "answer": "All done."})
    lines = lines_of(run.pk, add_events(run, says, ends))
    assert " hidden>" in lines[0].html
    assert "All done." in lines[1].html


def test_a_long_run_shows_its_newest_lines_quickly(world: World) -> None:
    run = world.run()
    add_events(run, *[(EventType.RUN_TITLED, {"title": f"Title {number}."}) for number in range(5000)])
    client = world.client("viewer")
    text_of(client, "/runs/")
    begin = time.monotonic()
    html = text_of(client, f"/runs/{run.pk}/")
    assert time.monotonic() - begin < 3
    assert "Title 4999." in html
    assert "Title 4699." not in html
    earlier = text_of(client, f"/runs/{run.pk}/?before=4701")
    assert "Title 4699." in earlier
    assert "data-socket" not in earlier


def test_runs_are_filtered_by_status_employee_and_text(world: World) -> None:
    waiting, done = world.run(task="Alpha task"), world.run(RunStatus.SUCCEEDED, task="Beta task")
    client = world.client("viewer")
    for query, shown, hidden in (
        ("status=waiting", waiting, done),
        ("q=beta", done, waiting),
        (f"employee={world.employee.pk}&q=alpha", waiting, done),
    ):
        html = text_of(client, f"/runs/?{query}")
        assert f"/runs/{shown.pk}/" in html
        assert f"/runs/{hidden.pk}/" not in html
    assert "No run fits" in text_of(client, "/runs/?employee=999")
    assert text_of(client, "/runs/?status=nonsense&employee=x&before=y")


def test_the_list_of_runs_goes_on_behind_its_cursor(world: World) -> None:
    ids = [world.run().pk for _ in range(35)]
    client = world.client("viewer")
    first = text_of(client, "/runs/")
    assert f"/runs/{ids[-1]}/" in first
    assert f"before={ids[5]}" in first
    second = text_of(client, f"/runs/?before={ids[5]}")
    assert f"/runs/{ids[4]}/" in second
    assert f"/runs/{ids[5]}/" not in second


def test_a_task_is_handed_over_and_refused_in_words(world: World) -> None:
    client = world.client("operator")
    answer = client.post("/", {"employee": world.employee.pk, "task": "Tidy up."})
    run = Run.objects.get()
    assert answer["Location"] == f"/runs/{run.pk}/"
    empty = client.post("/", {"employee": world.employee.pk, "task": "  "})
    assert (empty.status_code, b"task is empty" in empty.content) == (422, True)
    long = client.post("/", {"employee": world.employee.pk, "task": "x" * 100_000})
    assert long.status_code == 422
    assert client.post("/", {"employee": world.others_employee.pk, "task": "x"}).status_code == 404
    assert client.post("/", {"employee": "", "task": "x"}).status_code == 422
    assert world.client("viewer").post("/", {"employee": world.employee.pk, "task": "x"}).status_code == 403
    assert Run.objects.count() == 1


def test_a_run_is_cancelled_told_more_and_continued_by_forms(world: World) -> None:
    client = world.client("operator")
    done, waiting = world.run(RunStatus.SUCCEEDED), world.run()
    assert client.post(f"/runs/{done.pk}/continue/", {"max_passes": "x"}).status_code == 422
    assert client.post(f"/runs/{done.pk}/continue/", {"max_passes": "3"}).status_code == 302
    assert Run.objects.get(pk=done.pk).status == RunStatus.QUEUED
    assert client.post(f"/runs/{waiting.pk}/message/", {"text": "Hurry."}).status_code == 302
    assert client.post(f"/runs/{waiting.pk}/cancel/").status_code == 302
    assert Run.objects.get(pk=waiting.pk).status == RunStatus.CANCELLED
    assert client.post(f"/runs/{waiting.pk}/message/", {"text": "Still there?"}).status_code == 409


def test_a_scripted_employee_is_said_to_follow_a_script(world: World) -> None:
    run = world.run()
    for path in ("/", "/employees/", f"/runs/{run.pk}/"):
        assert "follows a script" in text_of(world.client("operator"), path).lower()


def test_rows_in_a_result_become_a_table() -> None:
    table = table_of({"total": 30, "records": [{"id": number, "name": "x"} for number in range(30)]})
    assert table is not None
    assert (table.columns, len(table.rows), table.left_out) == (["id", "name"], 20, 10)
    assert table_of({"a": 1}) is None
    assert table_of(None) is None
    assert table_of([1, 2]) is None
