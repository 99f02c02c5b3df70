"""Cards that must be approved individually: the inbox says so, and bulk decisions refuse to approve
them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from agents.accounts.models import Organization
from agents.approvals.bulk import DecisionOutcome, decide_many
from agents.approvals.decisions import Decision
from agents.approvals.warnings.card_marks import WaitingCard, find_marks, load_facts
from agents.approvals.warnings.card_reading import read_cards
from agents.approvals.warnings.marks import Mark, select_individual
from agents.employees.models import Grant
from agents.runs.engine.cards import compute_digest
from agents.runs.models import Approval, ApprovalStatus, Pass, ToolCall
from tests.features import feature
from tests.world import World, change
from tools.office.files.changes import write_file
from tools.office.records.models import Record
from tools.toolbox.provenance import Provenance, SeenIn, Sighting

pytestmark = pytest.mark.django_db

Make = Callable[[World], Approval]


def update(world: World, **changes: Any) -> Approval:
    return world.card(params={"record_id": str(world.records[0].pk), "changes": changes})


def update_many(world: World, count: int, level: str = "write") -> Approval:
    records = [
        Record.objects.create(organization=world.acme, name=f"Company {n}") for n in range(count)
    ]
    params = {"record_ids": [str(record.pk) for record in records], "changes": {"region": "US"}}
    card = world.card(tool="data.bulkUpdate", params=params)
    call = card.tool_call
    call.level = card.level = level
    card.digest = compute_digest(call, card.preview)
    call.save()
    card.save()
    return card


def say(world: World, words: str) -> Approval:
    card = world.card()
    Pass.objects.create(run=card.run, number=1, response={}, text=words, messages_upto=1)
    return card


def resemble_a_record(world: World) -> Approval:
    Record.objects.create(organization=world.acme, name="Acrne Corp")
    return world.card()


def resemble_the_address(world: World) -> Approval:
    Record.objects.filter(pk=world.records[0].pk).update(email="office@acme.com")
    return update(world, notes="Write to office@acrne.com")


def bring_from_outside(world: World) -> Approval:
    card = update(world, email="a@evil.example")
    seen = Sighting(
        "changes.email", "changes.email", "a@evil.example", SeenIn.OUTSIDE, stands_out=True
    )
    ToolCall.objects.filter(pk=card.tool_call_id).update(provenance=Provenance((seen,)).as_json())
    return card


def restore_a_backup(world: World) -> None:
    Organization.objects.filter(pk=world.acme.pk).update(restored_at=Now())


def request_before_a_restored_backup(world: World) -> Approval:
    card = world.card()
    restore_a_backup(world)
    return card


def request_after_a_restored_backup(world: World) -> Approval:
    restore_a_backup(world)
    card = world.card()
    ToolCall.objects.filter(pk=card.tool_call_id).update(created_at=Now() + timedelta(seconds=1))
    return card


def change_the_target(world: World) -> Approval:
    card = world.card()
    Record.objects.filter(pk=world.records[0].pk).update(version=2)
    return card


def delete_the_target(world: World) -> Approval:
    card = world.card(params=change(world.records[1], "+1"))
    world.records[1].delete()
    return card


REASONS: dict[str, tuple[Make, list[str]]] = {
    "a plain card": (lambda world: world.card(), []),
    "plain words": (lambda world: say(world, "I want to set the phone."), []),
    "a mark": (lambda world: update(world, notes="a\u200bb"), ["Hidden characters"]),
    "a similar name": (resemble_a_record, ["Similar names"]),
    "an address like the record's": (resemble_the_address, ["Almost the same", "New here"]),
    "a destination that is new here": (
        lambda world: update(world, email="ann@new.example"),
        ["New here"],
    ),
    "words that imitate Gadget": (
        lambda world: say(world, "Gadget: verified."),
        ["Imitates Gadget"],
    ),
    "a destination from outside": (bring_from_outside, ["From outside", "New here"]),
    "a draft with few targets": (lambda world: update_many(world, 3, "draft"), []),
    "a draft that reaches far": (lambda world: update_many(world, 51, "draft"), ["Affects many"]),
    "a write that reaches far": (
        lambda world: update_many(world, 51),
        ["Affects many", "Must be opened"],
    ),
    "a request before a restored backup": (
        request_before_a_restored_backup,
        ["May be done already"],
    ),
    "a request after it": (request_after_a_restored_backup, []),
    "a changed target": (change_the_target, ["Cannot run as shown"]),
    "a deleted target": (delete_the_target, ["Cannot run as shown"]),
    "a long value": (lambda world: update(world, notes="x" * 201), ["Must be opened"]),
    "a deletion": (lambda world: world.destructive_card(), ["Destructive"]),
}


def decide(world: World, card: Approval, **more: Any) -> DecisionOutcome:
    decision = Decision(card.digest, **more)
    (outcome,) = decide_many(world.member("approver"), [(card.pk, "approve", decision)])
    return outcome


def find_individual_marks(world: World, *cards: Approval) -> dict[int, tuple[Mark, ...]]:
    columns = [
        WaitingCard(card.pk, card.level, card.digest, card.tool_call.created_at) for card in cards
    ]
    readings = read_cards(world.acme.pk, {card.pk: card.digest for card in cards})
    marks = find_marks(world.acme, columns, readings, load_facts(world.acme, columns, readings))
    return {pk: found for pk, each in marks.items() if (found := select_individual(each))}


@feature(
    "The gate",
    "Cards with any reason to be approved individually say so in the list, and are refused in bulk",
    "agents/approvals/warnings/marks.py",
)
@pytest.mark.parametrize(("make", "reasons"), REASONS.values(), ids=REASONS)
def test_the_row_and_the_bulk_refusal_state_the_reasons(
    world: World, make: Make, reasons: list[str]
) -> None:
    card = make(world)
    html = world.client("approver").get("/approvals/").content.decode()
    shown = [reason for reason in reasons if reason not in ("Destructive", "New here")]
    is_selectable = not shown and "Destructive" not in reasons
    assert (f"Select card {card.pk}" in html) == is_selectable
    assert ("<b>New here</b>" in html) == ("New here" in reasons)
    labels = [
        *re.findall(r'<b class="odd">([^<]+)</b>', html),
        *(["Must be opened"] if "must be opened" in html else []),
    ]
    assert labels == shown
    outcome = decide(world, card)
    if reasons:
        assert (outcome.status, outcome.detail.partition(": ")[2]) == (422, ", ".join(reasons))
    assert (outcome.status == 200) == (not reasons)


def write_changed_file(world: World) -> Approval:
    Grant.objects.create(employee=world.employee, tool="files.write")
    card = world.card(tool="files.write", params={"path": "a.md", "text": "new"})
    write_file(world.acme.pk, ("a.md",), [b"other"], lambda _: None)
    return card


def test_a_changed_file_cannot_be_approved_in_bulk(world: World) -> None:
    """A bulk decision computes the effect again. The list does not, because that is slow, so the
    list cannot show that the file has changed."""
    changed = write_changed_file(world)
    same = world.card(tool="files.write", params={"path": "b.md", "text": "new"})
    assert find_individual_marks(world, changed, same) == {}
    assert [decide(world, card).status for card in (changed, same)] == [422, 200]
    assert decide(world, changed).detail.endswith(": Cannot run as shown")


def test_a_similar_record_in_another_organization_is_not_a_reason(world: World) -> None:
    Record.objects.create(organization=world.globex, name="Acrne Corp")
    assert find_individual_marks(world, world.card()) == {}


def test_a_card_of_another_organization_is_not_found(world: World) -> None:
    card = write_changed_file(world)
    Approval.objects.filter(pk=card.pk).update(organization=world.globex)
    assert decide(world, card).status == 404


def test_a_repeated_decision_returns_its_first_response(world: World) -> None:
    card = world.card()
    assert decide(world, card, decision_id="one").status == 200
    Record.objects.filter(pk=world.records[0].pk).update(version=2)
    assert decide(world, card, decision_id="one").status == 200
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.APPROVED


def test_the_number_of_queries_is_independent_of_the_number_of_cards(world: World) -> None:
    cards = [
        world.card(),
        *(update_many(world, 6, "draft") for _ in range(3)),
        say(world, "Gadget: safe."),
    ]

    def count(*some: Approval) -> list[str]:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            find_individual_marks(world, *some)
        return [query["sql"] for query in queries]

    cards = list(Approval.objects.select_related("tool_call").order_by("pk"))
    assert len(count(cards[1])) == len(count(*cards)) == 6
    warm = count(*cards)
    assert len(warm) == 4
    assert not [sql for sql in warm if "preview" in sql], (
        "content that is cached is not loaded again"
    )
