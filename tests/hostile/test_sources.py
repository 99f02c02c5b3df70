"""The pages of a source show all texts from its server and its tools as text."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.utils import timezone

from tests.admin.rows import address
from tests.admin.source_pages import tools_page
from tests.hostile.pages import Reading, strange, untold
from tests.hostile.world import Words
from tests.world import make_world
from tools.connections.models import Source, SourceKind, SourceTool

pytestmark = [pytest.mark.django_db, pytest.mark.once]

A_PAGE = 50
BREAKS = {"<br >"}
HOW = cycle((("", False), ("a", True), ("b", True)))
"""The accepted hash, and True if the tool is chosen, for each state: not chosen, offered,
quarantined."""


def connect(kind: SourceKind, words: Words) -> tuple[Client, Source]:
    """Create a source with these texts in its own fields and in the fields of its tools."""
    world = make_world()
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    titles, texts, long = words.of(200), words.of(4_000, "\n"), words.of(10_000)
    source = Source.objects.create(
        organization=world.acme,
        kind=kind,
        name="s",
        title=titles[0],
        told=long[0][:2_000],
        problem=long[-1][:500],
    )
    Source.objects.filter(pk=source.pk).update(
        checked_at=timezone.now(), described_version=titles[0][:40]
    )
    described = cycle(texts)
    rows = []
    for number, title in enumerate([*titles, *texts[len(titles) :]]):
        key = f"GET /{number}{title}" if kind == SourceKind.OPENAPI else f"{number}{title}"
        accepted, is_chosen = next(HOW)
        old = definition_of(next(described), titles[number % len(titles)], "former")
        more: dict[str, Any] = {
            "accepted_hash": accepted,
            "accepted_definition": old,
            "is_chosen": is_chosen,
            "hash": "a",
        }
        definition = definition_of(next(described), title[:200], "present")
        what = {
            "key": key[:200],
            "tool": f"s.t{number}",
            "title": title[:200],
            "tags": [title[:100]],
        }
        rows.append(
            SourceTool(source=source, definition=definition, inferred_level="read", **what, **more)
        )
    SourceTool.objects.bulk_create(rows)
    return client, source


def definition_of(text: str, title: str, when: str) -> dict[str, Any]:
    """Build a definition with the texts in all of its parts: keys and values of schemas, hints and
    reasons."""
    schema = {
        "type": "object",
        "properties": {title: {"type": title, "description": text}},
        "required": [title],
    }
    return {
        "description": f"{when} {text}",
        "level_reason": title,
        "input_schema": {**schema, "$comment": text},
        "output_schema": {title: [text, title]},
        "annotations": {when: title, "title": text},
    }


def read(kind: SourceKind, words: Words) -> dict[str, list[Reading]]:
    """Read the source's own page, and every page of its tools."""
    client, source = connect(kind, words)
    pages = range(1, source.tools.count() // A_PAGE + 2)
    places = {
        "tools": [f"{tools_page(source)}?p={number}" for number in pages],
        "source": [address(source, "change")],
        "deletion": [address(source, "delete")],
    }
    responses = {name: [client.get(where) for where in wheres] for name, wheres in places.items()}
    assert all(response.status_code == 200 for each in responses.values() for response in each)
    return {
        name: [Reading(response.content.decode()) for response in each]
        for name, each in responses.items()
    }


@pytest.mark.every_commit
@pytest.mark.parametrize("kind", [SourceKind.OPENAPI, SourceKind.MCP_HTTP])
def test_every_page_of_a_source_escapes_the_text_of_its_server(kind: SourceKind) -> None:
    with transaction.atomic():
        usual = read(kind, Words(is_hostile=False))
        transaction.set_rollback(True)
    told = ""
    for name, readings in read(kind, Words(is_hostile=True)).items():
        known = {shape for reading in usual[name] for shape in reading.shapes}
        faults = {fault for reading in usual[name] for fault in reading.faults}
        wrong = {
            each for reading in readings for each in (*strange(reading, known), *reading.faults)
        }
        assert wrong - faults - BREAKS == set(), name
        told += "".join(reading.text for reading in readings) if name == "tools" else ""
    assert untold(told, 200) == []
