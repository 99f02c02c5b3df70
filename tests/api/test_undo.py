"""POST /api/approvals/{id}/undo withdraws an approval; only the person who gave it can do so, and
only until the call starts."""

from __future__ import annotations

from typing import Any

import pytest

from agents.runs.models import Approval, ApprovalStatus, CallStatus, ToolCall
from tests.features import feature
from tests.world import World, post, problem

pytestmark = pytest.mark.django_db(transaction=True)


def approved(world: World, **body: Any) -> Approval:
    card = world.card()
    response = post(
        world.client("approver"),
        f"/api/approvals/{card.pk}/approve",
        {"digest": card.digest, **body},
    )
    assert response.status_code == 200, response.content
    return card


def test_undoing_an_approval_creates_a_new_card(world: World) -> None:
    card = approved(world, grace_s=60)
    response = post(world.client("approver"), f"/api/approvals/{card.pk}/undo")
    assert response.status_code == 200, response.content
    shown = response.json()
    assert shown["status"] == "superseded"
    assert Approval.objects.get(pk=int(shown["next_approval_id"])).status == ApprovalStatus.PENDING
    assert ToolCall.objects.get(pk=card.tool_call_id).status == CallStatus.AWAITING_APPROVAL


def test_only_the_person_who_decided_can_undo(world: World) -> None:
    card = approved(world, grace_s=60)
    response = post(world.client("admin"), f"/api/approvals/{card.pk}/undo")
    assert response.status_code in (403, 409)
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.APPROVED


def test_a_waiting_card_cannot_be_undone(world: World) -> None:
    card = world.card()
    problem(post(world.client("approver"), f"/api/approvals/{card.pk}/undo", {}), 409)


def test_a_started_call_cannot_be_undone(world: World) -> None:
    card = approved(world)
    Approval.objects.filter(pk=card.pk).update(status="consumed", consumed_at=card.requested_at)
    ToolCall.objects.filter(pk=card.tool_call_id).update(
        status="executing", exec_epoch=1, deadline_at=card.expires_at, attempts=1
    )
    problem(post(world.client("approver"), f"/api/approvals/{card.pk}/undo"), 409)


@feature("The inbox", "Many approvals are undone with one request", "agents/approvals/bulk.py")
def test_each_card_of_a_bulk_undo_gets_its_own_outcome(world: World) -> None:
    cards = [approved(world, grace_s=60) for _ in range(2)]
    waiting = world.card()
    ids = [str(card.pk) for card in (cards[0], waiting, cards[1])]
    response = post(world.client("approver"), "/api/approvals/undo", {"approval_ids": ids})
    assert [(one["approval_id"], one["status"]) for one in response.json()["outcomes"]] == [
        (ids[0], 200), (ids[1], 409), (ids[2], 200)
    ]  # fmt: skip
    assert {Approval.objects.get(pk=card.pk).status for card in cards} == {
        ApprovalStatus.SUPERSEDED
    }


def test_nobody_can_undo_another_persons_decisions_in_bulk(world: World) -> None:
    card = approved(world, grace_s=60)
    for who, status in (("admin", 409), ("outsider", 404)):
        response = post(world.client(who), "/api/approvals/undo", {"approval_ids": [str(card.pk)]})
        assert [one["status"] for one in response.json()["outcomes"]] == [status]
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.APPROVED
