"""`read_card` and the card's page agree on whether parts of the card are folded."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agents.approvals.bulk import find_bulk_refusals
from agents.approvals.warnings.card_marks import load_marks
from agents.approvals.warnings.card_reading import read_card
from agents.approvals.warnings.marks import FOLDED
from agents.runs.models import Approval
from tests.deceptions.planting import call, list_targets, replace_content
from tests.features import feature
from tests.world import DELETE, UPDATE, World
from tools.office.records.models import Record

pytestmark = pytest.mark.django_db

CREATE = "data.createRecord"
FOLD = re.compile(r'<details class="(?:clamp|rest)[ "]')


def page_folds(world: World, card: Approval) -> bool:
    """Return True if the page folds something besides the exact request and the origins of
    values."""
    return bool(FOLD.search(show(world, card)))


def show(world: World, card: Approval) -> str:
    """Return the page of the card without the exact request."""
    html = world.client("approver").get(f"/approvals/{card.pk}/card/").content.decode()
    return html.partition('class="exact-request"')[0]


def split_page(world: World, card: Approval) -> tuple[list[str], list[str], str]:
    """Return the names of the values that the effect shows unfolded, the names of the folded
    values, and the summary between them."""
    effect = show(world, card).partition('class="effect"')[2].partition('class="why"')[0]
    shown, _, rest = effect.partition('<details class="rest values">')
    summary, _, folded = rest.partition("</summary>")
    names = re.compile(r'<dt><bdi class="field-name">(.*?)</bdi></dt>')
    return names.findall(shown), names.findall(folded), re.sub("<[^>]+>", "", summary)


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


OPTIONS = {f"option_{number}": "yes" for number in range(40)}


@feature(
    "The gate",
    "A card that is higher than a phone shows what must be read first and folds the rest",
    "agents/approvals/warnings/folding.py",
)
def test_the_destination_and_the_odd_value_come_first_and_most_of_forty_values_are_folded(
    world: World,
) -> None:
    params: dict[str, Any] = OPTIONS | {
        "option_30": "no",
        "amount": 900,
        "cover": {"recipient": "Mallory"},
    }
    card = call(**params)(world)
    shown, folded, summary = split_page(world, card)
    # PostgreSQL stores the params in another order.
    assert sorted(shown[:2]) == ["amount", "cover · recipient"]
    assert shown[2] == "option_30"
    assert sorted(shown + folded) == sorted([*OPTIONS, "amount", "cover · recipient"])
    assert f"{len(folded)} more values" in " ".join(summary.split())
    assert read_card(card).folds_parts
    assert page_folds(world, card)


def test_ten_short_values_are_not_folded(world: World) -> None:
    card = call(**dict(list(OPTIONS.items())[:10]))(world)
    shown, folded, _ = split_page(world, card)
    assert (len(shown), len(folded)) == (10, 0)
    assert not read_card(card).folds_parts
    assert not page_folds(world, card)


def test_the_values_of_the_request_are_shown_if_the_preview_failed(world: World) -> None:
    card = list_targets(7)(world)
    failed = card.preview | {"problem": "The preview failed."}
    shown, folded, _ = split_page(world, replace_content(card, preview=failed, params=OPTIONS))
    assert sorted(shown + folded) == sorted(OPTIONS)


@pytest.mark.parametrize(("params", "is_folded"), [(OPTIONS, True), ({"option": "yes"}, False)])
def test_a_card_of_many_short_values_is_never_approved_in_bulk(
    world: World, params: dict[str, Any], is_folded: bool
) -> None:
    card = call(**params)(world)
    refusals = find_bulk_refusals([card], load_marks([card]))
    assert (FOLDED in {mark.kind for mark in refusals.get(card.pk, ())}) == is_folded
