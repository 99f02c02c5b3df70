"""A card that affects many objects, or a large share of all records, must be confirmed by typing;
other cards need not."""

from __future__ import annotations

import pytest

from agents.approvals import bulk, decisions
from agents.platform.refusals import Invalid
from agents.runs.models import Approval, ApprovalStatus, ToolCall
from tests.features import feature
from tests.world import World
from tools.office.records.models import Record
from tools.toolbox.provenance import Provenance, SeenIn, Sighting

pytestmark = pytest.mark.django_db


def update_many(world: World, affected: int, total: int) -> Approval:
    """Create a card at write level whose call updates `affected` of `total` records."""
    Record.objects.filter(organization=world.acme).delete()
    records = [
        Record.objects.create(organization=world.acme, name=f"C{n}", region="EU")
        for n in range(total)
    ]
    params = {
        "record_ids": [str(record.pk) for record in records[:affected]],
        "changes": {"region": "US"},
    }
    return world.card(tool="data.bulkUpdate", params=params)


@feature(
    "The gate",
    "Calls that affect many objects, or a large share of all, are confirmed by typing",
    "agents/approvals/warnings/reach.py",
)
@pytest.mark.parametrize(
    ("affected", "total", "phrase"),
    [(6, 31, None), (6, 30, None), (6, 29, "6"), (5, 5, None), (50, 300, None), (51, 300, "51")],
)
def test_changing_more_than_50_objects_or_over_20_percent_of_at_least_6_needs_typed_confirmation(
    world: World, affected: int, total: int, phrase: str | None
) -> None:
    assert decisions.make_confirmation_phrase(update_many(world, affected, total)) == phrase


def test_each_organization_has_its_own_limits(world: World) -> None:
    world.acme.confirm_count, world.acme.confirm_percent = 7, 100
    world.acme.save()
    assert decisions.make_confirmation_phrase(update_many(world, 7, 8)) is None
    assert decisions.make_confirmation_phrase(update_many(world, 8, 8)) == "8"


def test_a_large_effect_is_approved_only_with_the_typed_count(world: World) -> None:
    card = update_many(world, 10, 12)
    approver = world.member("approver")
    with pytest.raises(Invalid) as refused:
        decisions.approve(approver, card.pk, decisions.Decision(card.digest))
    assert refused.value.extra["field"] == "confirm"
    assert (
        decisions.approve(approver, card.pk, decisions.Decision(card.digest, confirm="10")).status
        == "approved"
    )


@feature(
    "The gate",
    "Cards warn of signs of deception, and cards with warnings are refused in bulk",
    "agents/approvals/warnings/card_reading.py",
)
@pytest.mark.parametrize("changes", [{"notes": "a\u200bb"}, {"domain": "\u0430cme.com"}])
def test_a_card_with_a_warning_or_a_large_effect_cannot_be_approved_in_bulk(
    world: World, changes: dict[str, str]
) -> None:
    marked = world.card(params={"record_id": str(world.records[0].pk), "changes": changes})
    far, plain = (
        update_many(world, 10, 12),
        world.card(params={"name": "New"}, tool="data.createRecord"),
    )
    approver = world.member("approver")
    items = [
        (card.pk, "approve", decisions.Decision(card.digest, confirm="10"))
        for card in (marked, far, plain)
    ]
    assert [outcome.status for outcome in bulk.decide_many(approver, items)] == [422, 422, 200]
    denied = bulk.decide_many(approver, [(marked.pk, "deny", decisions.Decision(marked.digest))])
    assert [outcome.status for outcome in denied] == [200]
    assert Approval.objects.get(pk=far.pk).status == ApprovalStatus.PENDING


@pytest.mark.parametrize(("stands_out", "status"), [(True, 422), (False, 200)])
def test_a_destination_from_outside_that_stands_out_cannot_be_approved_in_bulk(
    world: World, stands_out: bool, status: int
) -> None:
    card = world.card(
        params={"record_id": str(world.records[0].pk), "changes": {"email": "a@evil.example"}}
    )
    seen = Sighting("changes.email", "changes.email", "a@evil.example", SeenIn.OUTSIDE, stands_out)
    ToolCall.objects.filter(pk=card.tool_call_id).update(provenance=Provenance((seen,)).as_json())
    items = [(card.pk, "approve", decisions.Decision(card.digest, seen_marks=frozenset({"new"})))]
    assert [outcome.status for outcome in bulk.decide_many(world.member("approver"), items)] == [
        status
    ]


@pytest.mark.parametrize(("length", "status"), [(201, 422), (200, 200)])
def test_a_shortened_value_cannot_be_approved_in_bulk(
    world: World, length: int, status: int
) -> None:
    card = world.card(params={"name": "New", "notes": "x" * length}, tool="data.createRecord")
    items = [(card.pk, "approve", decisions.Decision(card.digest))]
    assert [outcome.status for outcome in bulk.decide_many(world.member("approver"), items)] == [
        status
    ]
