"""`read_card` and the card's page agree on whether parts of the card are folded."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agents.approvals.warnings.card_reading import read_card
from agents.runs.models import Approval
from tests.world import DELETE, UPDATE, World
from tools.office.records.models import Record

pytestmark = pytest.mark.django_db

CREATE = "data.createRecord"
FOLDED = re.compile(r'<details class="(?:clamp|rest)"')


def page_folds(world: World, card: Approval) -> bool:
    """Return True if the page folds something besides the exact request and the origins of
    values."""
    html = world.client("approver").get(f"/approvals/{card.pk}/card/").content.decode()
    return bool(FOLDED.search(html.partition('class="exact-request"')[0]))


@pytest.mark.parametrize(
    ("name", "notes"),
    [
        ("Short", "short"),
        ("Short", "x" * 200),
        ("Short", "x" * 201),
        ("Short", "line\n" * 7 + "end"),
        ("Short", "line\n" * 8 + "end"),
        ("x" * 200, ""),
        ("Short", "⟦" * 201),
    ],
)
def test_the_code_and_the_page_agree_on_folding_a_created_record(
    world: World, name: str, notes: str
) -> None:
    card = world.card(tool=CREATE, params={"name": name, "notes": notes})
    assert read_card(card).folds_parts == page_folds(world, card)


@pytest.mark.parametrize("number", [1, 5, 6])
@pytest.mark.parametrize("tool", [DELETE, "data.bulkUpdate"])
def test_the_code_and_the_page_agree_on_folding_lists_of_more_than_five(
    world: World, tool: str, number: int
) -> None:
    records = [
        Record.objects.create(organization=world.acme, name=f"C{n}", region="EU")
        for n in range(number)
    ]
    params: dict[str, Any] = {"record_ids": [str(record.pk) for record in records]}
    card = world.card(
        tool=tool, params=params | ({} if tool == DELETE else {"changes": {"region": "US"}})
    )
    assert read_card(card).folds_parts == page_folds(world, card) == (number > 5)


def test_a_long_text_with_few_changes_is_still_folded(world: World) -> None:
    record = world.records[0]
    record.notes = "word " * 100
    record.save()
    card = world.card(
        tool=UPDATE,
        params={"record_id": str(record.pk), "changes": {"notes": "word " * 99 + "end"}},
    )
    assert read_card(card).folds_parts
