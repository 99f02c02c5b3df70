"""All hostile strings in every place of every page: an element more, a hidden character or a foreign address fails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import urljoin

import pytest
from django.db import transaction
from django.test import Client

from tests.hostile import FAMILIES, HOSTILE
from tests.web.hostile_pages import Reading, Shape, strange, tells
from tests.web.hostile_world import IN_ALL, OF_LINES, HostileWorld, Words, make_hostile_world

pytestmark = [pytest.mark.django_db, pytest.mark.once]

HARMLESS_PAGES = 7
"""So many pages of each kind are read with harmless text."""


def test_there_are_more_than_300_and_no_two_are_the_same() -> None:
    assert len(HOSTILE) > 300
    assert len(set(HOSTILE)) == len(HOSTILE)
    assert all(FAMILIES.values())
    assert max(len(text) for text in HOSTILE) == 100_000


def test_the_reading_notices_what_is_not_escaped() -> None:
    for text in (*FAMILIES["handlers"], *FAMILIES["bidirectional"][:-1], *FAMILIES["zero width"][:-2]):
        reading = Reading(f"<p>{text}</p>")
        assert reading.faults, text
    for end in ('"', "'"):
        broken = Reading(f"<p title={end}{end} autofocus onfocus=window.hacked=1 x={end}{end}></p>")
        assert broken.faults
        assert strange(broken, {("p", frozenset({"title"}))})
    for address in ("https://evil.example/", "//evil.example/", "javascript:1", "data:text/html,x"):
        assert Reading(f'<a href="{address}">x</a>').faults, address


def every_page(made: HostileWorld) -> dict[str, list[str]]:
    """By kind, the addresses of pages that together show every row."""
    runs, cards = [run.pk for run in made.runs], [card.pk for card in made.cards]
    return {
        "home": ["/", "/?live=1"],
        "employees": ["/employees/"],
        "employee": [f"/employees/{one.pk}/" for one in made.employees],
        "tools": ["/tools/"],
        "runs": ["/runs/"],
        "run": [f"/runs/{pk}/" for pk in runs],
        "call": [f"/runs/{call.run_id}/calls/{call.pk}/" for call in made.calls],
        "approvals": ["/approvals/"],
        "history": ["/approvals/?history=1"],
        "card": [f"/approvals/{pk}/" for pk in (*cards[:9], *cards[1::3])],
        "fragment": [f"/approvals/{pk}/card/" for pk in cards[:9]],
        "records": ["/records/"],
        "record": [f"/records/{record.pk}/" for record in made.records],
        "drafts": ["/drafts/"],
        "draft": [f"/drafts/{draft.pk}/" for draft in made.drafts],
        "audit": ["/audit/"],
        "users": ["/users/"],
    }


def followed(client: Client, address: str, most: int) -> Iterator[tuple[str, Reading]]:
    """The page and those behind its "next" link."""
    where = address
    for _ in range(most):
        answer = client.get(where)
        assert answer.status_code == 200, (where, answer.status_code)
        reading = Reading(answer.content.decode())
        yield where, reading
        if not reading.following:
            return
        where = urljoin(where, reading.following)


def read(made: HostileWorld, kinds: Iterable[str], most: int) -> Iterator[tuple[str, str, Reading]]:
    """Every page of these kinds as an admin sees it, at most so many of each."""
    client, pages = made.world.client("admin"), every_page(made)
    for kind in kinds:
        for address in pages[kind][:most]:
            for where, reading in followed(client, address, most):
                yield kind, where, reading


def whole(words: Words) -> dict[str, list[str]]:
    """By kind, what its pages together tell from the first character to the last."""
    lines, boxes = words.of(OF_LINES), [*words.longest(), *words.of(IN_ALL, "\n")]

    def of(*limits: int) -> list[str]:
        return [text for limit in limits for text in words.of(limit)]

    return {
        "employees": of(80, 120),
        "employee": [*of(40, 80, 120), *boxes],
        "runs": lines,
        "run": [*lines, *boxes],
        "call": lines,
        "approvals": lines,
        "card": lines,
        "records": [*lines, *of(50, 80, 250)],
        "record": [*lines, *of(40, 50, 80, 100, 250), *boxes],
        "drafts": lines,
        "draft": lines,
        "audit": lines,
        "users": of(120, 150),
    }


def test_no_page_becomes_what_somebody_wrote_and_each_tells_all_of_it() -> None:
    known: dict[str, set[Shape]] = {}
    with transaction.atomic():
        harmless = make_hostile_world(is_hostile=False)
        kinds = list(every_page(harmless))
        for kind, _, reading in read(harmless, kinds, HARMLESS_PAGES):
            assert not reading.faults, (kind, reading.faults)
            known.setdefault(kind, set()).update(reading.shapes)
        transaction.set_rollback(True)

    made = make_hostile_world()
    told: dict[str, str] = dict.fromkeys(kinds, "")
    found: dict[str, list[str]] = {}
    for kind, where, reading in read(made, kinds, len(HOSTILE)):
        if wrong := [*strange(reading, known[kind]), *reading.faults]:
            found[where] = wrong[:3]
        told[kind] += reading.text
    assert not found
    for kind, texts in whole(made.words).items():
        assert [text[:80] for text in texts if not tells(told[kind], text)] == [], kind
