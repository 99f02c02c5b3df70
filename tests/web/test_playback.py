"""The playback shows the whole run, using only its events. Its export is a single file, without the
values that people chose to leave out."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

import pytest
from django.utils import timezone

from agents.approvals.resolutions import OUTCOMES
from agents.runs.event_words import RESOLUTIONS
from agents.runs.models import Event, EventType, Run, RunStatus, ToolCall
from agents.runs.redaction import EventRedaction, redact_fields
from agents.web.playback.entries import build_entries
from agents.web.views import playback
from tests.features import feature
from tests.web.described_samples import build_samples
from tests.web.pages import read_page
from tests.web.run_events import add_events, build_run_end, build_tool_result, build_tool_start
from tests.world import World, success

pytestmark = pytest.mark.django_db

SECRET = "+1 555 0100"


def play(world: World) -> Run:
    """Create a run with one search and one denied update, whose values are secret."""
    run = world.run(RunStatus.SUCCEEDED, task="Find the phone", title="Find it")
    call, update = world.call(run), world.call(run, "data.updateRecord", level="write")
    about = {
        "call_id": str(call.pk),
        "tool": call.tool,
        "display_name": "Search records",
        "level": "read",
    }
    asked = {
        "call_id": str(update.pk),
        "approval_id": "1",
        "tool": "data.updateRecord",
        "level": "write",
    }
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


@feature(
    "The gate",
    "Playback of a run from its events, and an export with redaction",
    "agents/web/playback/entries.py",
    whole_file=True,
)
def test_the_page_shows_every_event_with_its_time(world: World) -> None:
    run = play(world)
    html = read_page(world.client("viewer"), f"/runs/{run.pk}/replay/")
    assert html.count('<li class="playback-entry') == 8
    for words in (
        "Started by ada",
        "<strong>look around</strong>",
        "Search records",
        "Denied by ada",
        "Not now",
        SECRET,
    ):
        assert words in html
    assert html.count('class="playback-time"') == 8
    assert "<b>now</b>" not in html
    assert f'href="/runs/{run.pk}/replay/"' in read_page(world.client("viewer"), f"/runs/{run.pk}/")


def test_the_playback_shows_the_past_even_if_rows_have_changed_since_then(world: World) -> None:
    run = play(world)
    before = build_entries(run.events.order_by("seq"))
    Run.objects.filter(pk=run.pk).update(title="Another title", answer="Another answer")
    ToolCall.objects.filter(run=run).delete()
    assert build_entries(run.events.order_by("seq")) == before


@pytest.mark.parametrize("path", ["replay/", "replay.html"])
def test_a_person_from_another_organization_cannot_open_the_playback(
    world: World, path: str
) -> None:
    run = play(world)
    assert world.client("outsider").get(f"/runs/{run.pk}/{path}").status_code == 404
    assert world.client("viewer").get(f"/runs/{run.pk}/{path}").status_code == 200


def test_every_type_of_event_has_a_description(world: World) -> None:
    card = world.card()
    events = add_events(card.run, *build_samples(card).items())
    assert {event.type for event in events} == set(EventType.values)
    assert all(entry.head for entry in build_entries(events))


def test_the_export_takes_its_title_from_the_runs_events(world: World) -> None:
    run = play(world)
    add_events(
        run,
        (EventType.RUN_TITLED, {"title": "Find the phone number"}),
        (EventType.RUN_TITLED, {"title": None}),
    )
    Run.objects.filter(pk=run.pk).update(title="Another title")
    html = read_export(world, run)
    assert "<title>Playback: “Find the phone number”</title>" in html
    assert "Another title" not in html


def list_numbers(html: str) -> list[int]:
    return [int(number) for number in re.findall('id="event-([0-9]+)"', html)]


def test_playback_of_a_long_run_shows_its_start_and_end_with_a_labeled_gap(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = world.run(RunStatus.SUCCEEDED)
    passes = [(EventType.PASS_STARTED, {"pass_number": number}) for number in range(1, 9)]
    add_events(run, *passes, (EventType.RUN_FINISHED, build_run_end("Done")))
    monkeypatch.setattr(playback, "FIRST_EVENTS", 3)
    monkeypatch.setattr(playback, "LAST_EVENTS", 2)
    page = read_page(world.client("viewer"), f"/runs/{run.pk}/replay/")
    assert re.findall('id="timeline-([0-9]+)"', page) == ["1", "2", "3", "8"]
    for html in (page, read_export(world, run)):
        assert list_numbers(html) == [1, 2, 3, 8, 9]
        before, after = re.split(
            "4 events before this\\s+are not part of the playback; the transcript has all", html
        )
        assert (list_numbers(before), list_numbers(after)) == ([1, 2, 3, 8], [9])
    monkeypatch.setattr(playback, "FIRST_EVENTS", 7)
    whole = read_page(world.client("viewer"), f"/runs/{run.pk}/replay/")
    assert list_numbers(whole) == list(range(1, 10))
    assert "not part of the playback" not in whole


RESOLUTION = {"call_id": "1", "by": "ada", "reason": "I looked."}
DECISION = {
    "call_id": "1",
    "approval_id": "1",
    "decided_by": "ada",
    "reason": "Why",
    "next_approval_id": None,
}


@pytest.mark.parametrize(
    ("type_", "payload", "note"),
    [
        (EventType.CALL_RESOLVED, RESOLUTION | {"outcome": "succeeded"}, "It happened, reported by ada"),
        (EventType.CALL_RESOLVED, RESOLUTION | {"outcome": "not_done"}, "It did not happen, reported by ada"),
        (EventType.CALL_RESOLVED, RESOLUTION | {"outcome": "failed", "by": "gadget"},
            "It did not happen, reported by Gadget"),
        (EventType.CALL_RESOLVED, RESOLUTION | {"outcome": "acknowledged"}, "It happened late. Acknowledged by ada"),
        (EventType.CALL_RESOLVED, RESOLUTION | {"outcome": "late_report", "by": "gadget"}, "Reported late"),
        (EventType.APPROVAL_DECIDED, DECISION | {"status": "approved"}, "Approved by ada"),
        (EventType.APPROVAL_DECIDED, DECISION | {"status": "denied"}, "Denied by ada"),
        (EventType.APPROVAL_DECIDED, DECISION | {"status": "superseded"}, "Replaced"),
        (EventType.APPROVAL_DECIDED, DECISION | {"status": "expired", "decided_by": ""}, "Expired"),
        (EventType.TOOL_REJECTED, {"call_id": "1", "tool": "x", "code": "NOT_PERMITTED", "reason": "It may not."},
            "Not carried out"),
        (EventType.TOOL_RESULT, {"call_id": "1", "tool": "x", "result": {
            "success": False, "summary": "No record 7.", "error": {"code": "NOT_FOUND", "message": "No record 7."},
        }}, "No record 7."),
    ],
)  # fmt: skip
def test_each_entry_has_the_expected_note_and_reason(
    type_: EventType, payload: dict[str, Any], note: str
) -> None:
    event = Event(seq=1, type=type_, payload=payload, created_at=timezone.now())
    (entry,) = build_entries([event])
    assert entry.note == note
    assert entry.text == payload.get("reason", "")


def test_a_wait_lasts_until_work_continues_and_not_just_until_a_card_is_decided() -> None:
    types = (
        EventType.PASS_STARTED,
        EventType.RUN_WAITING,
        EventType.APPROVAL_DECIDED,
        EventType.PASS_STARTED,
    )
    payloads: list[dict[str, Any]] = [
        {"pass_number": 1},
        {"approval_ids": ["1"]},
        DECISION | {"status": "approved"},
        {"pass_number": 2},
    ]
    events = [
        Event(seq=number, type=type_, payload=payload, created_at=timezone.now())
        for number, (type_, payload) in enumerate(zip(types, payloads, strict=True), 1)
    ]
    assert [entry.waits_after for entry in build_entries(events)] == [False, True, True, False]


def test_every_resolution_by_a_person_has_a_description() -> None:
    assert {*OUTCOMES} < RESOLUTIONS.keys()


def test_the_export_needs_no_other_files_and_runs_only_its_own_script(world: World) -> None:
    html = read_export(world, play(world))
    policy = (
        html.split('http-equiv="Content-Security-Policy"')[1].split('content="')[1].split('"')[0]
    )
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


CODES = frozenset(
    {
        "call_id",
        "approval_id",
        "duplicate_of",
        "tool",
        "level",
        "code",
        "status",
        "exit_reason",
        "outcome",
        "cut_off",
    }
    | {"retry_at", "currency", "approval_ids"}
)
NAMES = frozenset({"by", "decided_by", "display_name"})
TEXTS = {
    EventType.RUN_TITLED: "title",
    EventType.ASSISTANT_MESSAGE: "text",
    EventType.ASSISTANT_THOUGHT: "text",
    EventType.APPROVAL_DECIDED: "reason",
    EventType.QUESTION_ASKED: "text",
    EventType.QUESTION_ANSWERED: "text",
    EventType.MESSAGE_ADDED: "text",
    EventType.RUN_WAITING: "reason",
    EventType.RUN_RESUMED: "reason",
    EventType.CALL_RESOLVED: "reason",
    EventType.PROVIDER_DELAYED: "reason",
    EventType.ANSWER_UNUSABLE: "text",
    EventType.RUN_FINISHED: "answer",
}
"""For each event type, the field with a text by a person or the employee; all other texts are
values.
"""
SHOWN_VALUES = {
    EventType.TOOL_START, EventType.TOOL_PROGRESS, EventType.TOOL_RESULT, EventType.TOOL_REJECTED,
    EventType.APPROVAL_REQUESTED, EventType.LATE_EFFECT,
}  # fmt: skip


PLANTED = "planted 4711"


def plant(value: Any, name: str = "") -> Any:
    """Put the secret into every text in the value. Also put it into the names inside params and
    data, because such names may be values as well."""
    if name in CODES | NAMES:
        return value
    if name in ("params", "data"):
        return {PLANTED: PLANTED, **(value or {})}
    if isinstance(value, dict):
        return {key: plant(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [plant(each) for each in value]
    return f"{value} {PLANTED}" if isinstance(value, str) else value


def plant_some(samples: dict[EventType, dict[str, Any]], *, in_texts: bool, in_values: bool) -> Any:
    return [
        (type_, {name: plant(value, name) if chosen else value for name, value in payload.items()})
        for type_, payload in samples.items()
        if (chosen := in_texts if type_ in TEXTS else in_values) or True
    ]


@pytest.mark.parametrize("chosen", [("values",), ("texts",), ("values", "texts")])
def test_the_export_does_not_contain_redacted_values(world: World, chosen: tuple[str, ...]) -> None:
    secret = {"in_texts": "texts" in chosen, "in_values": "values" in chosen}
    task = f"Call {PLANTED}" if secret["in_texts"] else "Call"
    card = world.card(world.run(RunStatus.SUCCEEDED, task=task, title=task))
    events = add_events(card.run, *plant_some(build_samples(card), **secret))
    shown = {entry.seq for entry in build_entries(events) if PLANTED in repr(entry)}
    expected = {
        *(TEXTS if secret["in_texts"] else ()),
        *(SHOWN_VALUES if secret["in_values"] else ()),
    }
    assert {event.type for event in events if event.seq in shown} == expected
    assert PLANTED in read_export(world, card.run)
    assert PLANTED not in read_export(
        world, card.run, "?" + "&".join(f"redact={each}" for each in chosen)
    )


FREE = {"type": "object", "additionalProperties": {"type": "integer"}}
NESTED = {
    "$defs": {"Row": {"properties": {"c": {}}}},
    "properties": {"a": {}, "b": {"$ref": "#/$defs/Row"}},
}
TREE = {
    "$defs": {"Node": {"properties": {"password": {}, "child": {"$ref": "#/$defs/Node"}}}},
    "anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}],
}

PARTS = {f"p{n}": {"$ref": f"#/$defs/D{n}"} for n in range(12)}
MUTUAL = {"$defs": {f"D{n}": {"properties": PARTS} for n in range(12)}, "properties": PARTS}
"""If its references were replaced by their targets, this schema would have billions of parts."""


@pytest.mark.parametrize(
    ("value", "schema", "shown"),
    [
        ({"a": 1, "b": {"c": [1]}}, NESTED, {"a": "redacted", "b": {"c": "redacted"}}),
        ({"a": 1, "b": {"c": 1}}, {"anyOf": [NESTED, {"type": "null"}], "$defs": NESTED["$defs"]}, {
            "a": "redacted", "b": {"c": "redacted"}
        }),
        ({"b": {"ada@acme.example": 1}}, NESTED, {"b": {"field 1": "redacted"}}),
        ({"b": {"ada@acme.example": 1}}, {"properties": {"b": FREE}}, {"b": {"field 1": "redacted"}}),
        ({"ada": 1, "a": {"c": 2}, "kim": 3}, NESTED, {
            "field 1": "redacted", "a": {"field 1": "redacted"}, "field 3": "redacted"
        }),
        ({"password": "x", "child": {"child": {"password": "x", "y": "z"}}}, TREE, {
            "password": "redacted", "child": {"child": {"password": "redacted", "field 2": "redacted"}}
        }),
        ({"p0": {"p11": {"x": 1}}}, MUTUAL, {"p0": {"p11": {"field 1": "redacted"}}}),
        ({"a": 1}, None, {"field 1": "redacted"}),
        ([{"a": "x"}], NESTED, "redacted"),
        ({"a": None, "b": ""}, NESTED, {"a": None, "b": ""}),
        (0, NESTED, "redacted"),
        (False, NESTED, "redacted"),
    ],
)  # fmt: skip
def test_redaction_keeps_the_schemas_names_but_no_values(
    value: Any, schema: Any, shown: Any
) -> None:
    assert redact_fields(value, schema) == shown
    assert EventRedaction(values=True).redact_data("no.tool", value) == redact_fields(value, None)


def test_the_export_keeps_field_names_but_removes_values_that_serve_as_names(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED)
    call = world.call(run, "data.getStats")
    start = build_tool_start(call)[1] | {"params": {"region": SECRET, SECRET: "x"}}
    stats = {"total": 3, "by_region": {SECRET: 3}, SECRET: {"x": 1}}
    result = build_tool_result(call)[1]
    result["result"] |= {"data": stats}
    add_events(run, (EventType.TOOL_START, start), (EventType.TOOL_RESULT, result))
    assert SECRET in read_export(world, run)
    redacted = read_export(world, run, "?redact=values")
    assert SECRET not in redacted
    for name in ("region", "total", "by_region", "field 1", "field 3"):
        assert f'<span class="key">{name}</span>' in redacted
