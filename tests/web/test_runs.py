"""The list of runs, and the page of one run with a line for each event and for each call."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.runs.models import CallStatus, EventType, Pass, Run, RunStatus
from agents.runs.models.event import brief_result
from agents.web.panel.json_html import find_table, render_tree
from agents.web.panel.lines import render_lines
from agents.web.panel.slots import fold_events
from agents.web.views.runs import MAX_LINES
from tests.web.described_samples import build_samples
from tests.web.pages import read_page
from tests.web.run_events import (
    add_events,
    build_draft_result,
    build_run_end,
    build_tool_result,
    build_tool_start,
)
from tests.world import World, success
from tools.office.records.models import Draft

pytestmark = pytest.mark.django_db


def test_every_event_type_is_rendered_as_one_line(world: World) -> None:
    card = world.card()
    payloads = build_samples(card)
    assert payloads.keys() == set(EventType)
    for line in render_lines(card.run_id, add_events(card.run, *payloads.items())):
        assert line.html.startswith("<li "), line
        assert line.html.count("<li ") == 1, line
        assert line.html.endswith("</li>"), line


def test_a_call_has_one_line_that_is_updated_with_its_status(world: World) -> None:
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
    events = add_events(
        run, build_tool_start(first), build_tool_start(second), build_tool_result(first)
    )
    assert [event.type for event in fold_events(events)] == ["tool_result", "tool_start"]
    html = read_page(world.client("viewer"), f"/runs/{run.pk}/")
    assert html.count(f'id="call-{first.pk}"') == html.count(f'id="call-{second.pk}"') == 1
    assert html.count('class="spinner"') == 1
    assert "Found 47 records" in html
    assert 'data-after="3"' in html


def test_the_page_shows_what_the_socket_sends(world: World) -> None:
    run = world.run()
    events = add_events(
        run,
        build_tool_start(world.call(run)),
        (EventType.MESSAGE_ADDED, {"text": "<b>hi</b>", "by": "operator"}),
    )
    page = read_page(world.client("viewer"), f"/runs/{run.pk}/")
    for line in render_lines(run.pk, events):
        assert line.html in page
    assert "<b>hi</b>" not in page


def test_the_answer_is_shown_once(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED)
    says = (EventType.ASSISTANT_MESSAGE, {"text": "All done.", "pass_number": 1})
    ends = (
        EventType.RUN_FINISHED,
        {"status": "succeeded", "exit_reason": "final_answer", "answer": "All done."},
    )
    lines = render_lines(run.pk, add_events(run, says, ends))
    assert " hidden>" in lines[0].html
    assert "All done." in lines[1].html
    page = read_page(world.client("viewer"), f"/runs/{run.pk}/")
    assert page.count('class="markdown answer"') == 1
    assert page.index('class="markdown answer"') < page.index('id="panel"')
    assert 'href="#end"' in page


def test_an_earlier_answer_stays_in_the_panel_after_the_run_resumes(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED)
    ends = [
        (
            EventType.RUN_FINISHED,
            {
                **build_run_end(f"Answer {number}."),
                "pass_number": number,
                "input_tokens": 1000 + number,
            },
        )
        for number in (1, 2)
    ]
    add_events(run, ends[0], (EventType.RUN_RESUMED, {"by": "operator"}), ends[1])
    page = read_page(world.client("viewer"), f"/runs/{run.pk}/")
    top, panel = page.split('id="panel"')
    assert "Answer 2." in top
    assert "1,002 + 5 tokens" in top
    assert "Answer 1." in panel
    assert "1,001 + 5 tokens" in panel
    assert "Answer 2." not in panel
    Run.objects.filter(pk=run.pk).update(status=RunStatus.QUEUED, finished_at=None, exit_reason="")
    assert (
        "Resumed. Earlier result:"
        in read_page(world.client("viewer"), f"/runs/{run.pk}/").split('id="panel"')[0]
    )


def test_a_pass_shows_its_usage_which_open_pages_receive_with_the_first_line_of_a_call(
    world: World,
) -> None:
    run = world.run()
    Pass.objects.create(
        run=run,
        number=1,
        response={},
        messages_upto=1,
        input_tokens=1200,
        output_tokens=80,
        duration_ms=2100,
    )
    first, second = world.call(run), world.call(run)
    events = add_events(
        run,
        (EventType.PASS_STARTED, {"pass_number": 1}),
        build_tool_start(first),
        build_tool_start(second),
    )
    figures = "1,200 + 80 tokens · 2.1 s"
    whole = render_lines(run.pk, events)
    assert figures in whole[0].html
    assert not any(figures in line.parts for line in whole), "the pass's own line has them"
    later = render_lines(run.pk, events[1:])
    assert f'<template data-into="pass-1-figures">{figures}</template>' in later[0].parts
    assert figures not in later[1].parts


def test_a_draft_is_shown_in_the_panel(world: World) -> None:
    run = world.run()
    draft = Draft.objects.create(
        organization=world.acme, title="R", body="# Who\n\n" + "long " * 5000, run_id=run.pk
    )
    other = Draft.objects.create(
        organization=world.globex, title="X", body="Secret of Globex", run_id="0"
    )
    mine, theirs = (world.call(run, "content.buildReport", level="draft") for _ in range(2))
    html = "".join(
        line.html
        for line in render_lines(
            run.pk,
            add_events(
                run,
                build_draft_result(mine, {"draft_id": str(draft.pk)}),
                build_draft_result(theirs, {"draft_id": str(other.pk)}),
            ),
        )
    )
    assert "<h3>Who</h3>" in html
    assert f'href="/drafts/{draft.pk}/">Read the whole text' in html
    assert "Secret of Globex" not in html


def test_a_draft_too_long_for_its_event_is_loaded_from_the_call(world: World) -> None:
    run = world.run()
    whole = success(None, markdown="# Preview\n\n" + "word " * 2000)
    call = world.call(run, "report.buildPreview", level="draft", result=whole)
    told = brief_result(whole)
    assert told["truncated"]
    cut = {"call_id": str(call.pk), "tool": call.tool, "duration_ms": 1, "result": told}
    (line,) = render_lines(run.pk, add_events(run, (EventType.TOOL_RESULT, cut)))
    assert "<h3>Preview</h3>" in line.html
    assert line.html.count("word") == 2000


def test_a_call_has_a_page_with_its_full_result(world: World) -> None:
    run = world.run()
    rows = [
        {"name": f"Company {number}", "nested": {"a": {"b": ["<b>", number]}}}
        for number in range(300)
    ]
    call = world.call(run, result=success({"records": rows}))
    html = read_page(world.client("viewer"), f"/runs/{run.pk}/calls/{call.pk}/")
    assert "Company 299" in html
    assert "<b>" not in html.split('id="main"')[1].replace("<b>follows", "")
    assert world.client("outsider").get(f"/runs/{run.pk}/calls/{call.pk}/").status_code == 404
    assert world.client("viewer").get(f"/runs/{world.run().pk}/calls/{call.pk}/").status_code == 404


def test_the_run_page_needs_a_constant_number_of_queries(world: World) -> None:
    counts = []
    client = world.client("viewer")
    for number in (3, 60):
        run = world.run()
        calls = [world.call(run) for _ in range(number)]
        add_events(
            run,
            *[
                event
                for call in calls
                for event in (build_tool_start(call), build_tool_result(call))
            ],
        )
        read_page(client, f"/runs/{run.pk}/")
        with CaptureQueriesContext(connection) as seen:
            read_page(client, f"/runs/{run.pk}/")
        counts.append(len(seen))
    assert counts[0] == counts[1]


def test_the_page_says_when_a_message_will_be_read(world: World) -> None:
    html = read_page(world.client("operator"), f"/runs/{world.run().pk}/")
    assert (
        '<span data-when="waiting">Dana reads this after all approvals in this run are decided'
        in html
    )
    assert '<span data-when="running" hidden>' in html


def test_a_long_run_shows_its_newest_lines_quickly(world: World) -> None:
    run = world.run()
    add_events(
        run, *[(EventType.RUN_TITLED, {"title": f"Title {number}."}) for number in range(5000)]
    )
    client = world.client("viewer")
    read_page(client, "/runs/")
    begin = time.monotonic()
    html = read_page(client, f"/runs/{run.pk}/")
    assert time.monotonic() - begin < 10
    assert "Title 4999." in html
    assert "Title 4699." not in html
    earlier = read_page(client, f"/runs/{run.pk}/?before=4701")
    assert "Title 4699." in earlier
    assert "data-socket" not in earlier


@pytest.mark.parametrize(
    ("later", "is_live"), [(MAX_LINES - 1, True), (MAX_LINES, False), (3 * MAX_LINES, False)]
)
def test_a_link_to_a_call_shows_the_page_that_has_its_line(
    world: World, later: int, is_live: bool
) -> None:
    run = world.run()
    call = world.call(run)
    titles = [(EventType.RUN_TITLED, {"title": f"Title {number}."}) for number in range(later)]
    add_events(run, build_tool_start(call), *titles)
    html = read_page(world.client("viewer"), f"/runs/{run.pk}/?call={call.pk}")
    assert f'id="call-{call.pk}"' in html
    assert ("data-socket" in html) is is_live
    other = read_page(world.client("viewer"), f"/runs/{run.pk}/?call={call.pk + 1}")
    assert "data-socket" in other


def test_a_link_to_a_call_opens_the_page_with_its_line_and_not_with_its_replaced_card(
    world: World,
) -> None:
    card = world.card()
    call, titles = card.tool_call, [(EventType.RUN_TITLED, {"title": "Title"})] * MAX_LINES
    superseded = {"status": "superseded", "next_approval_id": str(card.pk), "reason": ""}
    replaced = build_samples(card)[EventType.APPROVAL_DECIDED] | superseded
    add_events(card.run, build_tool_start(call), *titles, (EventType.APPROVAL_DECIDED, replaced))
    html = read_page(world.client("viewer"), f"/runs/{card.run_id}/?call={call.pk}")
    assert f'id="call-{call.pk}"' in html


def test_runs_are_filtered_by_status_employee_and_text(world: World) -> None:
    waiting, done = world.run(task="Alpha task"), world.run(RunStatus.SUCCEEDED, task="Beta task")
    client = world.client("viewer")
    for query, shown, hidden in (
        ("status=waiting", waiting, done),
        ("q=beta", done, waiting),
        (f"employee={world.employee.pk}&q=alpha", waiting, done),
    ):
        html = read_page(client, f"/runs/?{query}")
        assert f"/runs/{shown.pk}/" in html
        assert f"/runs/{hidden.pk}/" not in html
    assert "No matching runs" in read_page(client, "/runs/?employee=999")
    assert read_page(client, "/runs/?status=nonsense&employee=x&before=y")


def test_the_list_of_runs_continues_after_its_cursor(world: World) -> None:
    ids = [world.run().pk for _ in range(35)]
    client = world.client("viewer")
    first = read_page(client, "/runs/")
    assert f"/runs/{ids[-1]}/" in first
    assert f"before={ids[5]}" in first
    second = read_page(client, f"/runs/?before={ids[5]}")
    assert f"/runs/{ids[4]}/" in second
    assert f"/runs/{ids[5]}/" not in second


def test_a_task_starts_a_run_or_is_refused_with_a_reason(world: World) -> None:
    client = world.client("operator")
    response = client.post("/", {"employee": world.employee.pk, "task": "Tidy up."})
    run = Run.objects.get()
    assert response["Location"] == f"/runs/{run.pk}/"
    empty = client.post("/", {"employee": world.employee.pk, "task": "  "})
    assert (empty.status_code, b"Describe the task." in empty.content) == (422, True)
    long = client.post("/", {"employee": world.employee.pk, "task": "x" * 100_000})
    assert long.status_code == 422
    assert client.post("/", {"employee": world.others_employee.pk, "task": "x"}).status_code == 404
    assert client.post("/", {"employee": "", "task": "x"}).status_code == 422
    assert (
        world.client("viewer").post("/", {"employee": world.employee.pk, "task": "x"}).status_code
        == 403
    )
    assert Run.objects.count() == 1


def test_people_can_cancel_a_run_send_it_a_message_and_continue_it_with_forms(world: World) -> None:
    client = world.client("operator")
    done, waiting = world.run(RunStatus.SUCCEEDED), world.run()
    assert client.post(f"/runs/{done.pk}/continue/", {"max_passes": "x"}).status_code == 422
    assert client.post(f"/runs/{done.pk}/continue/", {"max_passes": "3"}).status_code == 302
    assert Run.objects.get(pk=done.pk).status == RunStatus.QUEUED
    assert client.post(f"/runs/{waiting.pk}/message/", {"text": "Hurry."}).status_code == 302
    assert client.post(f"/runs/{waiting.pk}/cancel/").status_code == 302
    assert Run.objects.get(pk=waiting.pk).status == RunStatus.CANCELLED
    assert client.post(f"/runs/{waiting.pk}/message/", {"text": "Still there?"}).status_code == 409


@pytest.mark.parametrize(
    ("act", "fields", "why", "kept"),
    [
        ("message", {"text": " \n "}, "Enter a message.", "<textarea"),
        (
            "message",
            {"text": "y" * 20_001},
            "Text has 20,001 characters; at most 20,000 are allowed.",
            "y" * 20_001,
        ),
        (
            "continue",
            {"max_passes": "1000"},
            "1 to 100; &#x27;1000&#x27; is not one",
            'value="1000"',
        ),
        ("continue", {"max_passes": "٣"}, "is not one", 'value="٣"'),
    ],
)
def test_the_run_page_shows_a_refusal_and_keeps_the_typed_values(
    world: World, act: str, fields: dict[str, str], why: str, kept: str
) -> None:
    run = world.run(RunStatus.FAILED, exit_reason="deadline")
    response = world.client("operator").post(f"/runs/{run.pk}/{act}/", fields)
    html = response.content.decode()
    assert response.status_code == 422
    assert why in html.split('role="alert">')[1].split("</p>")[0]
    assert kept in html
    assert f'data-run="{run.pk}"' in html
    assert f'data-address="/runs/{run.pk}/"' in html
    assert Run.objects.get(pk=run.pk).status == RunStatus.FAILED


def test_pages_say_that_a_scripted_employee_follows_a_script(world: World) -> None:
    run = world.run()
    for path in ("/", "/employees/", f"/runs/{run.pk}/"):
        assert "follows a script" in read_page(world.client("operator"), path).lower()


def test_rows_in_a_result_become_a_table() -> None:
    table = find_table(
        {"total": 30, "records": [{"id": number, "name": "x"} for number in range(30)]}
    )
    assert table is not None
    assert (table.columns, len(table.rows), table.hidden_rows) == (["id", "name"], 20, 10)
    assert table.rest == {"total": 30}
    assert find_table({"a": 1}) is None
    assert find_table(None) is None
    assert find_table([1, 2]) is None


def test_nested_data_becomes_a_tree_that_can_be_folded_and_has_a_limited_size() -> None:
    html = render_tree({"plain": 1, "<key>": {"deep": [{"name": "<b>\u202e"}]}})
    assert html.count("<details") == 3
    assert "&lt;key&gt;" in html
    assert "<b>" not in html
    assert "U+202E" in html
    assert "and 9,700 more" in render_tree({str(number): number for number in range(10_000)})
    deep: Any = "end"
    for _ in range(500):
        deep = {"in": deep}
    assert len(render_tree(deep)) < 100_000
