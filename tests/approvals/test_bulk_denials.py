"""Cards of one run that are denied in bulk are written together, as if each were denied alone."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.accounts.models import AuditEntry
from agents.approvals import attention
from agents.approvals.bulk import decide_many
from agents.approvals.decisions import Decision
from agents.runs.models import (
    Approval,
    ApprovalStatus,
    CallStatus,
    Event,
    EventType,
    RunStatus,
    ToolCall,
)
from tests.workshop import Workshop, again, asking, call


def ask(workshop: Workshop, count: int) -> list[Approval]:
    records = [workshop.record(name=f"Company {number}") for number in range(count)]
    calls = [
        call("data.updateRecord", record_id=str(each.pk), changes={"status": "inactive"})
        for each in records
    ]
    workshop.play(asking(*calls))
    return workshop.cards(workshop.work())


def deny(
    workshop: Workshop, cards: list[Approval], reasons: tuple[str, ...] = ("No.",)
) -> list[int]:
    """Deny the cards in bulk, with one reason for all or one for each, and return the statuses of
    the outcomes."""
    words = reasons * len(cards) if len(reasons) == 1 else reasons
    items = [
        (card.pk, "deny", Decision(card.digest, reason=reason))
        for card, reason in zip(cards, words, strict=True)
    ]
    return [outcome.status for outcome in decide_many(workshop.approver, items, uuid4())]


def statuses(cards: list[Approval]) -> list[str]:
    return [Approval.objects.get(pk=card.pk).status for card in cards]


def test_each_call_ends_with_an_event_an_audit_entry_and_the_reason(workshop: Workshop) -> None:
    cards = ask(workshop, 3)
    assert deny(workshop, cards) == [200, 200, 200]
    ended = ToolCall.objects.filter(pk__in=[card.tool_call_id for card in cards])
    assert {each.status for each in ended} == {CallStatus.DENIED}
    assert all("Reason: No." in each.content for each in ended)
    events = Event.objects.filter(run_id=cards[0].run_id, type=EventType.APPROVAL_DECIDED)
    assert sorted(events.values_list("seq", flat=True)) == sorted(
        each.finished_seq or 0 for each in ended
    )
    assert AuditEntry.objects.filter(action="card_denied").count() == 3
    assert again(cards[0].run).status == RunStatus.QUEUED


def test_each_additional_card_adds_at_most_one_statement(workshop: Workshop) -> None:
    counts = []
    for number in (2, 12):
        cards = ask(workshop, number)
        with CaptureQueriesContext(connection) as statements:
            deny(workshop, cards)
        counts.append(len(statements))
    assert counts[1] - counts[0] <= 10


@pytest.mark.parametrize("reasons", [("No.",), ("No.", "No.", "Not this one.")])
def test_a_card_with_a_stale_digest_stays_open_and_the_other_cards_are_denied(
    workshop: Workshop, reasons: tuple[str, ...]
) -> None:
    cards = ask(workshop, 3)
    cards[1].digest = "0" * 64
    assert deny(workshop, cards, reasons) == [200, 412, 200]
    assert statuses(cards) == [ApprovalStatus.DENIED, ApprovalStatus.PENDING, ApprovalStatus.DENIED]


def test_a_claimed_card_stays_open_and_the_other_cards_are_denied(workshop: Workshop) -> None:
    cards = ask(workshop, 3)
    attention.take(workshop.admin, cards[1].pk)
    assert deny(workshop, cards) == [200, 409, 200]
    assert statuses(cards) == [ApprovalStatus.DENIED, ApprovalStatus.PENDING, ApprovalStatus.DENIED]


def test_each_card_gets_its_own_reason(workshop: Workshop) -> None:
    cards = ask(workshop, 3)
    assert deny(workshop, cards, ("One.", "Two.", "Three.")) == [200, 200, 200]
    assert [Approval.objects.get(pk=card.pk).reason for card in cards] == ["One.", "Two.", "Three."]
