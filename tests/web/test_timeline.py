"""The timeline of a run shows every pass with its calls and waits, and a live message sends only
the changed segments."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents.runs.models import Event, EventType, Run, RunStatus
from agents.web.panel.lines import render_lines
from agents.web.panel.timeline import (
    DrawnSegment,
    build_timeline,
    load_timeline,
    load_timeline_from,
)
from agents.web.panel.timeline_spans import SpanKind
from tests.features import feature
from tests.web.asking import delegate_task
from tests.web.pages import read_page
from tests.web.run_events import add_events
from tests.world import World, success

pytestmark = pytest.mark.django_db

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)
PASS, START, RESULT = EventType.PASS_STARTED, EventType.TOOL_START, EventType.TOOL_RESULT
ASKED, DECIDED = EventType.APPROVAL_REQUESTED, EventType.APPROVAL_DECIDED
ENDED = {"status": "succeeded", "exit_reason": "final_answer", "answer": ""}


def call(
    world: World, run: Run, level: str = "read", name: str = "Search records"
) -> dict[str, Any]:
    row = world.call(run, level=level)
    about = {
        "call_id": str(row.pk),
        "tool": row.tool,
        "display_name": name,
        "level": level,
        "params": {},
    }
    return about | {"summary": "", "result": success(None), "duration_ms": 1, "pass_number": 1}


def add_at(run: Run, *events: tuple[float, EventType, dict[str, Any]]) -> list[Event]:
    """Add events at these seconds after the beginning."""
    rows = add_events(run, *[(type_, payload) for _, type_, payload in events])[-len(events) :]
    for row, (second, _, _) in zip(rows, events, strict=True):
        row.created_at = BEGIN + timedelta(seconds=second)
        Event.objects.filter(pk=row.pk).update(created_at=row.created_at)
    return rows


def places(segment: DrawnSegment, kind: SpanKind) -> list[tuple[int, int]]:
    return [(bar.x, bar.x + bar.width) for bar in segment.bars if bar.kind == kind]


@feature(
    "The gate",
    "One timeline over the whole run, with waits and colleagues; live messages send only passes that changed",
    "agents/web/panel/timeline.py",
    whole_file=True,
)
def test_parallel_calls_overlap_after_the_model(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED)
    one, two = call(world, run), call(world, run)
    add_at(
        run, (0, PASS, {"pass_number": 1}), (2, START, one), (2, START, two), (3, RESULT, one), (4, RESULT, two),
        (4, EventType.RUN_FINISHED, ENDED),
    )  # fmt: skip
    (segment,) = load_timeline(run.pk)
    assert places(segment, SpanKind.MODEL) == [(0, 500)]
    assert places(segment, SpanKind.READ) == [(500, 750), (500, 1000)]
    assert len({bar.y for bar in segment.bars}) == 3
    assert segment.weight == 16_000
    assert segment.description == "Model 2.0 s; “Search records” 1.0 s; “Search records” 2.0 s"


def test_consecutive_calls_share_a_lane(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED)
    one, two = call(world, run), call(world, run)
    add_at(
        run, (0, PASS, {"pass_number": 1}), (1, START, one), (2, RESULT, one), (2, START, two), (3, RESULT, two),
    )  # fmt: skip
    (segment,) = load_timeline(run.pk)
    assert len({bar.y for bar in segment.bars if bar.kind == SpanKind.READ}) == 1


def test_a_long_wait_is_drawn_only_as_wide_as_the_work_and_labeled_with_its_length(
    world: World,
) -> None:
    run = world.run(RunStatus.SUCCEEDED)
    update = call(world, run, "write", "Update a record")
    add_at(
        run, (0, PASS, {"pass_number": 1}), (1, ASKED, update), (7201, DECIDED, update), (7201, START, update),
        (7202, RESULT, update), (7202, EventType.RUN_FINISHED, ENDED),
    )  # fmt: skip
    (segment,) = load_timeline(run.pk)
    assert places(segment, SpanKind.WAIT) == [(250, 750)]
    assert places(segment, SpanKind.WRITE) == [(750, 1000)]
    assert segment.weight == 16_000
    assert segment.waited == "2 h 0 min"
    assert "Waiting for approval 2 h 0 min" in segment.description


def test_calls_and_passes_are_not_drawn_as_running_if_events_were_left_out(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED)
    search = call(world, run)
    events = add_at(
        run, (0, PASS, {"pass_number": 1}), (1, START, search), (2, EventType.TOOL_PROGRESS, search),
        (6, RESULT, search), (7, PASS, {"pass_number": 2}), (8, EventType.RUN_FINISHED, ENDED),
    )  # fmt: skip
    assert build_timeline(events) == load_timeline(run.pk)
    first, last = build_timeline([*events[:3], *events[4:]])
    assert [(bar.kind, bar.is_running) for bar in first.bars] == [("model", False), ("read", False)]
    assert first.description == "Model 1.0 s; “Search records” 1.0 s"
    assert (last.pass_number, last.description) == (2, "Model 1.0 s")


def test_a_colleagues_run_is_nested_in_its_call(world: World) -> None:
    child = delegate_task(world)
    assert child.parent is not None
    delegation: dict[str, Any] = {
        "call_id": str(child.parent_call_id),
        "tool": "employee.delegate",
        "display_name": "Delegate a task",
    }
    delegation |= {"level": "draft", "params": {"employee": "Kim"}}
    Event.objects.all().delete()
    Run.objects.update(next_event_seq=1)
    child.refresh_from_db()
    parent = Run.objects.get(pk=child.parent.pk)
    add_at(parent, (0, PASS, {"pass_number": 1}), (1, START, delegation), (9, RESULT, delegation))
    add_at(child, (2, PASS, {"pass_number": 1}), (4, EventType.RUN_FINISHED, ENDED))
    segment = load_timeline(parent.pk)[0]
    (outer,) = places(segment, SpanKind.COLLEAGUE)
    inner = places(segment, SpanKind.MODEL)[1]
    assert outer[0] <= inner[0] < inner[1] <= outer[1]
    assert "Task for Kim" in segment.description


def test_a_live_message_contains_only_the_changed_segments(
    world: World, django_assert_num_queries: Any
) -> None:
    run = world.run(RunStatus.QUEUED)
    events = add_at(run, *[(number, PASS, {"pass_number": number}) for number in range(1, 40)])
    search = call(world, run)
    events += add_at(run, (40, START, search), (41, RESULT, search))
    assert [segment.pass_number for segment in load_timeline_from(run.pk, events[-1].seq)] == [39]
    render_lines(run.pk, events[-2:])
    with django_assert_num_queries(3):
        lines = render_lines(run.pk, events[-2:])
    assert ["timeline-" in line.parts for line in lines] == [False, True]
    assert re.findall('data-into="(timeline-[0-9]+)"', lines[-1].parts) == ["timeline-39"]


def test_a_pass_is_drawn_again_when_the_next_pass_ends_it(world: World) -> None:
    run = world.run(RunStatus.QUEUED)
    events = add_at(run, (0, PASS, {"pass_number": 1}), (2, PASS, {"pass_number": 2}))
    parts = render_lines(run.pk, events[1:])[0].parts
    assert re.findall('data-into="(timeline-[0-9]+)"', parts) == ["timeline-1", "timeline-2"]


def test_events_that_are_not_part_of_the_timeline_do_not_send_segments(world: World) -> None:
    run = world.run(RunStatus.QUEUED)
    events = add_at(
        run, (0, PASS, {"pass_number": 1}), (1, EventType.RUN_TITLED, {"title": "Named"})
    )
    assert "timeline" not in render_lines(run.pk, events[1:])[0].parts


def test_the_page_also_describes_the_whole_timeline_in_words_as_a_list(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED)
    search = call(world, run, name="Search <b>")
    add_at(
        run, (0, PASS, {"pass_number": 1}), (1, START, search), (2, RESULT, search), (2, PASS, {"pass_number": 2}),
        (3, EventType.RUN_FINISHED, ENDED),
    )  # fmt: skip
    html = (
        read_page(world.client("viewer"), f"/runs/{run.pk}/")
        .split('id="timeline"')[1]
        .split("</ol>")[0]
    )
    assert html.count("<li") == 2
    assert "Pass 1: Model 1.0 s; “Search &lt;b&gt;” 1.0 s" in html
    assert "Search <b>" not in html
