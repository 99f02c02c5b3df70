"""The replay shows the whole run from its events alone; its export is one file that leaves out what was chosen."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

import pytest

from agents.runs.models import EventType, Run, RunStatus, ToolCall
from agents.web.replay.entries import build_entries
from agents.web.replay.redaction import ReplayRedaction
from tests.web.pages import read_page
from tests.web.run_events import add_events, build_samples
from tests.world import World, make_world, success

pytestmark = pytest.mark.django_db

SECRET = "+1 555 0100"


@pytest.fixture
def world() -> World:
    return make_world()


def play(world: World) -> Run:
    """A run with one search and one denied update, whose values are secret."""
    run = world.run(RunStatus.SUCCEEDED, task="Find the phone", title="Find it")
    call, update = world.call(run), world.call(run, "data.updateRecord", level="write")
    about = {"call_id": str(call.pk), "tool": call.tool, "display_name": "Search records", "level": "read"}
    asked = {"call_id": str(update.pk), "approval_id": "1", "tool": "data.updateRecord", "level": "write"}
    add_events(
        run,
        (EventType.RUN_STARTED, {"by": "ada"}),
        (EventType.PASS_STARTED, {"pass_number": 1}),
        (EventType.ASSISTANT_MESSAGE, {"pass_number": 1, "text": "I **look around** <b>now</b>."}),
        (EventType.TOOL_START, {**about, "params": {"phone": SECRET}, "summary": "", "pass_number": 1}),
        (EventType.TOOL_RESULT, {
            "call_id": str(call.pk), "tool": call.tool, "duration_ms": 1,
            "result": success({"records": [{"phone": SECRET}]}, summary=f"Found {SECRET}"),
        }),
        (EventType.APPROVAL_REQUESTED, {
            **asked, "sentence": f"Set the phone to **{SECRET}**", "params": {"phone": SECRET}, "digest": "",
            "expires_at": "2030-01-01T00:00:00+00:00",
        }),
        (EventType.APPROVAL_DECIDED, {
            "call_id": str(update.pk), "approval_id": "1", "status": "denied", "decided_by": "ada",
            "reason": "Not now", "next_approval_id": None,
        }),
        (EventType.RUN_FINISHED, {
            "status": "succeeded", "exit_reason": "final_answer", "answer": "Nothing was changed.", "outcome": "denied",
        }),
    )  # fmt: skip
    return run


def read_export(world: World, run: Run, query: str = "") -> str:
    response = world.client("viewer").get(f"/runs/{run.pk}/replay.html{query}")
    assert response.status_code == 200
    assert response["Content-Disposition"] == f'attachment; filename="run-{run.pk}-replay.html"'
    return str(response.content.decode())


def test_the_page_shows_every_event_with_its_time(world: World) -> None:
    run = play(world)
    html = read_page(world.client("viewer"), f"/runs/{run.pk}/replay/")
    assert html.count('<li class="replay-entry') == 8
    for words in (
        "Started by ada",
        "<strong>look around</strong>",
        "Search records",
        "Denied by ada",
        "Not now",
        SECRET,
    ):
        assert words in html
    assert html.count('class="replay-time"') == 8
    assert "<b>now</b>" not in html
    assert f'href="/runs/{run.pk}/replay/"' in read_page(world.client("viewer"), f"/runs/{run.pk}/")


def test_it_shows_what_was_true_then_whatever_the_rows_say_now(world: World) -> None:
    run = play(world)
    before = build_entries(run.events.order_by("seq"))
    Run.objects.filter(pk=run.pk).update(title="Another title", answer="Another answer")
    ToolCall.objects.filter(run=run).delete()
    assert build_entries(run.events.order_by("seq")) == before


@pytest.mark.parametrize("path", ["replay/", "replay.html"])
def test_a_stranger_finds_no_replay(world: World, path: str) -> None:
    run = play(world)
    assert world.client("outsider").get(f"/runs/{run.pk}/{path}").status_code == 404
    assert world.client("viewer").get(f"/runs/{run.pk}/{path}").status_code == 200


def test_every_type_of_event_has_words(world: World) -> None:
    card = world.card()
    events = add_events(card.run, *build_samples(card).items())
    assert {event.type for event in events} == set(EventType.values)
    assert all(entry.head for entry in build_entries(events))


@pytest.mark.parametrize(
    ("outcome", "note"),
    [
        ("succeeded", "It happened, reported by ada"),
        ("failed", "It did not happen, reported by ada"),
        ("not_done", "It did not happen, reported by ada"),
        ("late_report", "Reported late"),
        ("acknowledged", "Acknowledged by ada"),
    ],
)
def test_a_resolution_says_what_was_reported(world: World, outcome: str, note: str) -> None:
    payload = {"call_id": "1", "outcome": outcome, "by": "ada", "reason": "I looked."}
    (entry,) = build_entries(add_events(world.run(), (EventType.CALL_RESOLVED, payload)))
    assert (entry.note, entry.text) == (note, "I looked.")


def test_the_export_needs_nothing_else_and_runs_only_its_own_script(world: World) -> None:
    html = read_export(world, play(world))
    policy = html.split('http-equiv="Content-Security-Policy"')[1].split('content="')[1].split('"')[0]
    assert policy.startswith("default-src 'none';")
    for kind, tag in (("style", "style"), ("script", 'script type="module"')):
        (inline,) = re.findall(rf"<{tag}>(.*?)</{kind}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert not re.findall(r'(?:src|href)="(?!#)', html), "no address outside the file"


def test_the_export_has_all_values_unless_they_are_redacted(world: World) -> None:
    run = play(world)
    assert SECRET in read_export(world, run)
    redacted = read_export(world, run, "?redact=values")
    assert SECRET not in redacted
    assert "phone" in redacted, "names of fields stay"
    assert "Nothing was changed." in redacted
    without_texts = read_export(world, run, "?redact=values&redact=texts")
    for text in ("Nothing was changed.", "Find the phone", "Find it", "Not now", "look around"):
        assert text not in re.sub(r"<(style|script).*?</\1>", "", without_texts, flags=re.DOTALL)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"a": 1, "b": {"c": [1]}}, {"a": "redacted", "b": {"c": "redacted"}}),
        ([{"a": "x"}], "redacted"),
        ({"a": None, "b": ""}, {"a": None, "b": ""}),
        (0, "redacted"),
        (False, "redacted"),
    ],
)
def test_redaction_keeps_names_and_no_value(value: Any, shown: Any) -> None:
    assert ReplayRedaction(values=True).redact_value(value) == shown
