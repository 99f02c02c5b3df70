"""POST /api/approvals/decide gives each decision its own outcome and never approves a destructive
call."""

from __future__ import annotations

from typing import Any

import pytest

from agents.runs.models import Approval, ApprovalStatus
from tests.world import World, post, problem

pytestmark = pytest.mark.django_db


def item(card: Approval, action: str, **more: Any) -> dict[str, Any]:
    return {"approval_id": str(card.pk), "action": action, "digest": card.digest, **more}


def statuses(*cards: Approval) -> list[str]:
    return [Approval.objects.get(pk=card.pk).status for card in cards]


def test_outcomes_are_returned_in_the_order_of_the_decisions(world: World) -> None:
    approved, denied, stale, decided = (world.card() for _ in range(4))
    destructive = world.destructive_card()
    client = world.client("approver")
    post(client, f"/api/approvals/{decided.pk}/deny", {"digest": decided.digest})
    decisions = [
        item(approved, "approve"),
        item(stale, "approve", digest="0" * 64),
        {"approval_id": "999999", "action": "deny", "digest": "0"},
        item(destructive, "approve"),
        item(decided, "approve"),
        item(denied, "deny", reason="No."),
    ]
    response = post(client, "/api/approvals/decide", {"decisions": decisions})
    assert response.status_code == 200, response.content
    outcomes = response.json()["outcomes"]
    assert [outcome["approval_id"] for outcome in outcomes] == [
        each["approval_id"] for each in decisions
    ]
    assert [outcome["status"] for outcome in outcomes][:3] == [200, 412, 404]
    assert outcomes[3]["status"] in (403, 409, 422)
    assert [outcome["status"] for outcome in outcomes][4:] == [409, 200]
    assert statuses(approved, denied, stale, destructive, decided) == [
        ApprovalStatus.APPROVED,
        ApprovalStatus.DENIED,
        ApprovalStatus.PENDING,
        ApprovalStatus.PENDING,
        ApprovalStatus.DENIED,
    ]


def test_destructive_cards_can_be_denied_together(world: World) -> None:
    card = world.destructive_card()
    response = post(
        world.client("approver"), "/api/approvals/decide", {"decisions": [item(card, "deny")]}
    )
    assert [outcome["status"] for outcome in response.json()["outcomes"]] == [200]


def test_the_second_decision_of_one_card_is_refused(world: World) -> None:
    card = world.card()
    body = {"decisions": [item(card, "approve"), item(card, "deny")]}
    response = post(world.client("approver"), "/api/approvals/decide", body)
    assert [outcome["status"] for outcome in response.json()["outcomes"]] == [200, 409]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"action": "maybe"}, "decisions.0.action"),
        ({"digest": ""}, "decisions.0.digest"),
        ({"approval_id": "x"}, "decisions.0.approval_id"),
        ({"reason": "x" * 2_001}, "decisions.0.reason"),
        ({"confirm": "Acme Corp"}, "decisions.0.confirm"),
    ],
)
def test_an_invalid_field_is_reported_and_none_of_the_cards_is_decided(
    world: World, change: dict[str, Any], field: str
) -> None:
    card = world.card()
    body = {"decisions": [{**item(card, "approve"), **change}]}
    assert (
        problem(post(world.client("approver"), "/api/approvals/decide", body), 422)["field"]
        == field
    )
    assert statuses(card) == [ApprovalStatus.PENDING]


@pytest.mark.parametrize("count", [0, 201])
def test_fewer_than_1_or_more_than_200_decisions_are_refused(world: World, count: int) -> None:
    body = {"decisions": [{"approval_id": "1", "action": "deny", "digest": "0"}] * count}
    assert (
        problem(post(world.client("approver"), "/api/approvals/decide", body), 422)["field"]
        == "decisions"
    )
