"""Transcripts of runs: they are complete, and contain nothing that a program could
render or run."""

from __future__ import annotations

import html
import json
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from agents.employees.models import ModelProvider
from agents.runs.models import EventType, Pass, Run, RunStatus
from agents.web.panel.lines import render_lines
from agents.web.panel.transcript import fence, quote
from tests.web.run_events import add_events, build_tool_result, build_tool_start
from tests.world import World, streamed, success

pytestmark = pytest.mark.django_db(transaction=True)

HOSTILE = (
    "```\n# Not a heading\n<img src=https://evil.example/x>\u202e ![p](https://evil.example/p) ````"
)


@pytest.fixture
def run(world: World) -> Run:
    """Create a run with hostile text in all fields, and a result too long for its event."""
    run = world.run(RunStatus.SUCCEEDED, task=HOSTILE, title=HOSTILE)
    Pass.objects.create(
        run=run,
        number=1,
        response={},
        messages_upto=1,
        input_tokens=1200,
        output_tokens=80,
        duration_ms=900,
    )
    long = success({"rows": ["x" * 100] * 100, "evil": HOSTILE}, summary=HOSTILE, markdown="")
    call = world.call(run, params={"text": HOSTILE}, result=long)
    cut = {**long, "data": None, "truncated": True}
    add_events(
        run,
        (EventType.RUN_STARTED, {"by": "operator"}),
        (EventType.PASS_STARTED, {"pass_number": 1}),
        (EventType.ASSISTANT_MESSAGE, {"text": HOSTILE, "pass_number": 1}),
        build_tool_start(call),
        (
            EventType.TOOL_RESULT,
            {"call_id": str(call.pk), "tool": call.tool, "result": cut, "duration_ms": 12},
        ),
        (EventType.MESSAGE_ADDED, {"text": HOSTILE, "by": HOSTILE}),
        (EventType.REQUEST_ADAPTED, {"pass_number": 1, "changes": [HOSTILE]}),
        (
            EventType.RUN_FINISHED,
            {"status": "succeeded", "exit_reason": "final_answer", "answer": HOSTILE},
        ),
    )
    return run


def download(client: Client, run: Run, form: str) -> str:
    response = client.get(f"/runs/{run.pk}/transcript.{form}")
    assert response.status_code == 200
    assert response["Content-Disposition"] == f'attachment; filename="run-{run.pk}.{form}"'
    assert response["Cache-Control"] == "no-store"
    return streamed(response)


def outside_fences(text: str) -> str:
    """Return the text outside of code blocks and code spans, which a Markdown program would
    render."""
    kept, fence = [], ""
    for line in text.splitlines():
        mark = re.match("`{3,}", line)
        if fence:
            fence = "" if line == fence else fence
        elif mark:
            fence = mark.group()
        else:
            kept.append(line)
    assert not fence, "every fence is closed"
    return re.sub(r"(`+) .*? \1(?!`)", "", "\n".join(kept))


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators")
def test_json_has_complete_params_and_results(world: World, run: Run) -> None:
    text = download(world.client("viewer"), run, "json")
    assert text.isascii(), "no hidden characters"
    transcript: dict[str, Any] = json.loads(text)
    assert transcript["run"]["task"] == HOSTILE
    assert [event["seq"] for event in transcript["events"]] == list(range(1, 9))
    by_type = {event["type"]: event for event in transcript["events"]}
    assert by_type["tool_start"]["params"] == {"text": HOSTILE}
    assert by_type["tool_result"]["result"]["data"] == {"rows": ["x" * 100] * 100, "evil": HOSTILE}
    assert "truncated" not in by_type["tool_result"]["result"]


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators")
def test_markdown_is_complete_and_puts_text_from_outside_into_fences(
    world: World, run: Run
) -> None:
    text = download(world.client("viewer"), run, "md")
    for part in ("## Task", "## Pass 1", "1,200 + 80 tokens", "### Call", "after 12 ms", "## End"):
        assert part in text
    assert text.count("x" * 100) == 100
    assert "\u202e" not in text
    assert "⟦U+202E⟧" in text
    rendered = outside_fences(text)
    for harm in ("<img", "evil.example", "Not a heading"):
        assert harm not in rendered


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators")
def test_the_transcript_of_a_long_run_is_complete_across_pages(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED)
    calls = [world.call(run, params={"number": number}) for number in range(120)]
    add_events(
        run,
        *[event for call in calls for event in (build_tool_start(call), build_tool_result(call))],
    )
    transcript = json.loads(download(world.client("viewer"), run, "json"))
    assert [event["seq"] for event in transcript["events"]] == list(range(1, 241))
    starts = [
        event["params"]["number"] for event in transcript["events"] if event["type"] == "tool_start"
    ]
    assert starts == list(range(120))


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators")
@pytest.mark.parametrize("form", ["md", "json"])
def test_a_lost_worker_is_recorded(world: World, form: str) -> None:
    run = world.run(RunStatus.SUCCEEDED)
    add_events(
        run,
        (
            EventType.RUN_RESUMED,
            {"by": "gadget", "reason": "The worker was lost; another one continues."},
        ),
    )
    assert "The worker was lost; another one continues." in download(
        world.client("viewer"), run, form
    )


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators")
def test_every_time_is_iso_8601_with_its_offset(world: World, run: Run) -> None:
    for unended in (False, True):
        if unended:
            run = world.run()
        transcript = json.loads(download(world.client("viewer"), run, "json"))
        times = [transcript["run"]["created_at"], *(event["at"] for event in transcript["events"])]
        assert (transcript["run"]["finished_at"] is None) == unended
        times += [] if unended else [transcript["run"]["finished_at"]]
        for time in times:
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", time)
            assert datetime.fromisoformat(time).utcoffset() == timedelta(0)
        assert abs(datetime.fromisoformat(times[0]) - run.created_at) < timedelta(milliseconds=1)
        text = download(world.client("viewer"), run, "md")
        assert f"- created at: ` {transcript['run']['created_at']} `" in text
        assert ("- finished at: —" in text) == unended


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators")
@pytest.mark.parametrize(
    ("used", "prices", "cost"),
    [
        ({}, {}, None),
        ({"input_tokens": 1200, "output_tokens": 80}, {}, None),
        (
            {"input_tokens": 1200, "output_tokens": 80},
            {"*": {"input": "0", "output": "0"}},
            "0.00 USD",
        ),
        ({"input_tokens": 1200, "output_tokens": 80, "cost_micros": 12_400_000}, {}, "12.40 USD"),
    ],
    ids=["no model", "no price", "free", "paid"],
)
def test_a_known_cost_is_shown_and_an_unknown_cost_is_null_or_a_dash(
    world: World, used: dict[str, int], prices: dict[str, Any], cost: str | None
) -> None:
    ModelProvider.objects.update(prices=prices)
    run = world.run(RunStatus.SUCCEEDED, **used)
    assert json.loads(download(world.client("viewer"), run, "json"))["run"]["cost"] == cost
    line = f"- cost: ` {cost} `" if cost else "- cost: —"
    assert line in download(world.client("viewer"), run, "md").splitlines()


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators")
def test_a_shortened_history_is_recorded(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED)
    told = {
        "pass_number": 3,
        "results": 2,
        "texts": 1,
        "tokens_before": 21_000,
        "tokens_after": 14_500,
    }
    (event,) = add_events(run, (EventType.HISTORY_SHORTENED, told))
    line = (
        "shortened to fit the model's context: 2 results and 1 text, about 21,000 → 14,500 tokens."
    )
    assert f"{line}<" in html.unescape(render_lines(run.pk, [event])[0].html)
    assert f"{line} `\n" in download(world.client("viewer"), run, "md")
    (entry,) = json.loads(download(world.client("viewer"), run, "json"))["events"]
    assert told.items() <= entry.items()


@pytest.mark.parametrize("form", ["md", "json"])
def test_a_transcript_of_another_organization_returns_404(
    world: World, run: Run, form: str
) -> None:
    assert world.client("outsider").get(f"/runs/{run.pk}/transcript.{form}").status_code == 404


@pytest.mark.parametrize("text", ["`", "```", "a\n````\nb", "`` `", "", " ", "\n```", "~~~\n```js"])
def test_no_text_can_close_its_fence_or_code_span(text: str) -> None:
    block = fence(text).splitlines()
    assert block[0] == block[-1]
    assert block[0] not in block[1:-1]
    span = quote(text)
    ticks = re.match("`*", span)
    assert ticks is not None
    assert "\n" not in span
    assert not ticks.group() or span.count(ticks.group()) == 2


def test_a_late_effect_is_recorded(world: World) -> None:
    call = world.late_call()
    told = streamed(world.client("viewer").get(f"/runs/{call.run_id}/transcript.md"))
    assert "*Late effect*" in told
    assert "Updated Acme Corp" in told
