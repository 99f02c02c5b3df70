"""POST /api/approvals/{id}/deny refuses the call and keeps the reason for the model."""

from __future__ import annotations

from typing import Any

import pytest

from agents.runs.models import Approval, ApprovalStatus, CallStatus, RunStatus, ToolCall
from tests.world import World, post, problem

pytestmark = pytest.mark.django_db


def deny(world: World, card: Approval, username: str = "approver", **body: Any) -> Any:
    return post(
        world.client(username), f"/api/approvals/{card.pk}/deny", {"digest": card.digest, **body}
    )


def test_the_model_reads_the_reason(world: World) -> None:
    card = world.card()
    shown = deny(world, card, reason="That is the old number.").json()
    assert (shown["status"], shown["reason"], shown["decided_by"]) == (
        "denied",
        "That is the old number.",
        "approver",
    )
    call = ToolCall.objects.get(pk=card.tool_call_id)
    assert call.status == CallStatus.DENIED
    assert "That is the old number." in call.content
    assert call.run.status == RunStatus.QUEUED


def test_a_destructive_card_is_denied_without_typing(world: World) -> None:
    assert deny(world, world.destructive_card()).status_code == 200


def test_a_denied_card_cannot_be_approved(world: World) -> None:
    card = world.card()
    deny(world, card)
    response = post(
        world.client("admin"), f"/api/approvals/{card.pk}/approve", {"digest": card.digest}
    )
    assert problem(response, 409)["approval_status"] == "denied"


def test_the_same_decision_sent_again_gets_the_same_response(world: World) -> None:
    card = world.card()
    first, second = deny(world, card, decision_id="1"), deny(world, card, decision_id="1")
    assert first.json() == second.json()


def test_another_digest_is_refused_as_stale(world: World) -> None:
    card = world.card()
    problem(deny(world, card, digest="0" * 64), 412)
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING


@pytest.mark.parametrize(
    ("field", "value"),
    [("reason", "x" * 2_001), ("reason", "\x00"), ("digest", None), ("confirm", "x")],
)
def test_an_invalid_field_is_reported(world: World, field: str, value: Any) -> None:
    assert problem(deny(world, world.card(), **{field: value}), 422)["field"] == field
