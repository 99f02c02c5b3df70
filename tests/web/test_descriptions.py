"""Every type of event has one description, which the panel, the playback, transcripts and webhooks
show.

`described_events.txt` contains their outputs for all samples. To update it, run this file with
WRITE_DESCRIBED_EVENTS=1, and review the diff.
"""

from __future__ import annotations

import json
import os
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.template.loader import get_template
from django.urls import reverse

from agents.accounts.models import OrganizationEvent
from agents.accounts.notice_facts import ORGANIZATION_KINDS, NoticeKind
from agents.runs.descriptions import DESCRIBERS, ORGANIZATION_EVENTS, describe
from agents.runs.event_facts import FactKind
from agents.runs.models import Approval, ApprovalKind, Event, EventType, Run
from agents.web.jinja_environment import JINJA
from agents.web.panel.lines import render_lines
from agents.web.panel.transcript import MarkdownTranscript, read_entries
from agents.web.playback.entries import build_entries
from agents.webhooks.changes import WebhookTerms, make_webhook
from agents.webhooks.models import Webhook, WebhookDelivery, WebhookKind
from agents.webhooks.outbox import write_deliveries, write_organization_deliveries
from tests.source_tree import ROOT
from tests.web.described_samples import (
    CALLS,
    LATER,
    ORGANIZATION_SAMPLES,
    SAMPLES,
    build_described_events,
    name_sample,
)
from tests.world import World

pytestmark = pytest.mark.django_db

PANEL = ROOT / "templates" / "panel"
KEPT = Path(__file__).with_name("described_events.txt")
LOOK, ICON, HEARD = (
    re.compile(each) for each in ('class="([^"]*)"', "#i-([a-z-]+)", 'data-announce="([^"]*)"')
)
TAG = re.compile("<[^>]*>")


@pytest.mark.parametrize("type_", EventType.values)
def test_every_type_of_event_is_described_and_has_a_sample(type_: str) -> None:
    samples = [payload for each, _, payload in SAMPLES if each == type_]
    assert samples, f"add a {type_} event to SAMPLES"
    assert type_ in DESCRIBERS, f"describe {type_} events in agents/runs/descriptions.py"
    for payload in samples:
        assert describe(Event(type=type_, payload=payload)).icon


@pytest.mark.parametrize("kind", ORGANIZATION_KINDS)
def test_every_type_of_organization_event_is_described_and_has_a_sample(kind: NoticeKind) -> None:
    samples = [payload for each, _, payload in ORGANIZATION_SAMPLES if each == kind]
    assert samples, f"add a {kind} fact to ORGANIZATION_SAMPLES"
    for payload in samples:
        assert payload["detail"] in describe(OrganizationEvent(type=kind, payload=payload)).words


def test_organization_events_and_run_events_have_different_types() -> None:
    assert set(ORGANIZATION_EVENTS) == set(ORGANIZATION_KINDS)
    assert not set(ORGANIZATION_EVENTS) & set(EventType.values)


def test_an_unknown_event_type_has_a_line_everywhere_and_is_logged_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    make_webhook(
        world.member("admin"), WebhookTerms("Other", "https://example.com/x", WebhookKind.values)
    )
    words = "Recorded by another version of Gadget: run_vanished"
    run = world.run(next_event_seq=2)
    Event.objects.create(run=run, seq=1, type="run_vanished", payload={})
    OrganizationEvent.objects.create(organization=world.acme, type="moon_rose", payload={})
    page = world.client("viewer").get(reverse("run", args=[run.pk])).content.decode()
    assert words in read_words(page)
    events = list(run.events.select_related("run").order_by("seq"))
    assert words in read_playback(events)[-1][0]
    assert "Run vanished" in read_transcript(run)[-1][0]
    write_deliveries(events)
    write_organization_deliveries(list(OrganizationEvent.objects.all()))
    assert not WebhookDelivery.objects.filter(seq=events[-1].seq).exists()
    assert len([each for each in caplog.messages if "'run_vanished'" in each]) == 1


def find_payload_readers(folder: Path) -> list[str]:
    """Name the templates that read an event's payload instead of its description."""
    read = {each.name: each.read_text(encoding="utf-8") for each in folder.glob("*.html")}
    return sorted(name for name, text in read.items() if "payload" in text)


def test_the_panels_templates_read_descriptions_instead_of_payloads(tmp_path: Path) -> None:
    for name in ("words", "payload"):
        (tmp_path / f"{name}.html").write_text(f"{{{{ description.{name} }}}}", encoding="utf-8")
    assert find_payload_readers(tmp_path) == ["payload.html"]
    assert find_payload_readers(PANEL) == [], "add what they need to Description"


def test_webhooks_know_every_kind_of_fact_and_the_samples_cover_every_kind() -> None:
    described = [describe(Event(type=type_, payload=payload)) for type_, _, payload in SAMPLES]
    described += [
        describe(OrganizationEvent(type=kind, payload=payload))
        for kind, _, payload in ORGANIZATION_SAMPLES
    ]
    assert {fact.kind for each in described for fact in each.facts} == set(FactKind)
    assert set(WebhookKind.values) == set(FactKind)


def test_the_described_samples_match_the_file(world: World) -> None:
    run, events = build_described_events(world)
    readers = [
        read_panel(run, events),
        read_playback(events),
        read_transcript(run),
        read_deliveries(world, run),
    ]
    lines = {
        name_sample(number): [line for each in readers for line in each[number]]
        for number in range(len(SAMPLES))
    } | read_facts_of_organization(world)
    shown = "\n".join(
        line.rstrip() for name, found in lines.items() for line in (f"# {name}", *found, "")
    )
    if os.environ.get("WRITE_DESCRIBED_EVENTS"):
        KEPT.write_text(shown, encoding="utf-8")
    kept = KEPT.read_text(encoding="utf-8")
    assert shown.split("\n\n") == kept.split("\n\n"), (
        "if the change is intended, set WRITE_DESCRIBED_EVENTS=1"
    )


def read_panel(run: Run, events: list[Event]) -> list[list[str]]:
    """Return the style, the text and the text for screen readers of each line of the panel."""
    lines = [line.html for line in render_lines(run.pk, events)]
    heard = [[f"heard   {unescape(said)}" for said in HEARD.findall(html)] for html in lines]
    return [
        [f"panel   [{find(LOOK, html)}] {read_words(html)}", *said]
        for html, said in zip(lines, heard, strict=True)
    ]


def read_playback(events: list[Event]) -> list[list[str]]:
    template = get_template("playback/entry.html", using=JINJA)
    entries = [template.render({"entry": entry}) for entry in build_entries(events)]
    return [
        [f"playback  [{find(LOOK, html)} {find(ICON, html)}] {read_words(html)}"]
        for html in entries
    ]


def find(pattern: re.Pattern[str], html: str) -> str:
    found = pattern.search(html)
    return found[1] if found else ""


def read_words(html: str) -> str:
    return " ".join(unescape(TAG.sub("", html)).split())


def read_transcript(run: Run) -> list[list[str]]:
    writer = MarkdownTranscript()
    written = [
        writer.write_entry(entry).strip("\n")
        for entry in read_entries(run.pk, 0, len(SAMPLES), set())
    ]
    return [[f"written {line}" for line in text.split("\n")] for text in written]


def read_deliveries(world: World, run: Run) -> list[list[str]]:
    terms = WebhookTerms("Other", "https://example.com/x", WebhookKind.values, sends_values=True)
    make_webhook(world.member("admin"), terms)
    Webhook.objects.update(told_from=run.events.earliest("created_at").created_at)
    call = CALLS["outcome_unknown"][0]
    Approval.objects.create(
        id=900_031, organization=world.acme, run=run, tool_call_id=call, kind=ApprovalKind.UNKNOWN, level="write",
        sentence="", preview={}, digest="", expires_at=LATER,
    )  # fmt: skip
    write_deliveries(list(run.events.select_related("run").order_by("seq")))
    shown: list[list[str]] = [[] for _ in SAMPLES]
    for one in WebhookDelivery.objects.order_by("pk"):
        ids = {
            name: value
            for name, value in one.payload.items()
            if name not in ("run_id", "employee_id")
        }
        shown[one.seq - 1].append(f"told    {one.kind} {dump(ids)} {dump(one.values)}")
    return shown


def read_facts_of_organization(world: World) -> dict[str, list[str]]:
    """Return the description of each organization event, and its deliveries."""
    events = OrganizationEvent.objects.bulk_create(
        OrganizationEvent(organization=world.acme, type=kind, payload=payload)
        for kind, _, payload in ORGANIZATION_SAMPLES
    )
    write_organization_deliveries(list(OrganizationEvent.objects.order_by("pk")))
    shown = {}
    for event, (kind, form, _) in zip(events, ORGANIZATION_SAMPLES, strict=True):
        found = describe(event)
        told = WebhookDelivery.objects.filter(run_id=None, seq=event.pk).order_by("pk")
        shown[f"{kind.value} of the organization, {form}"] = [
            f"described [{found.look} {found.icon}] {dump(found.words)} {dump(found.text)}",
            *(f"told    {one.kind} {dump(one.payload)} {dump(one.values)}" for one in told),
        ]
    return shown


def dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, sort_keys=True)
