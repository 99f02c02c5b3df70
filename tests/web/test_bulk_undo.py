"""The inbox offers to undo a bulk approval as a whole, and says how many of its calls had already
started."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db.models.functions import Now

from agents.approvals.undoable import list_undoable
from agents.runs.models import Approval, ApprovalStatus, CallStatus, ToolCall, WithheldBulk
from tests.world import World, post

pytestmark = pytest.mark.django_db(transaction=True)


def approve_two(world: World) -> str:
    bulk_id = str(uuid4())
    decided = [
        {"approval_id": str(card.pk), "action": "approve", "digest": card.digest, "grace_s": 60}
        for card in (world.card(), world.card())
    ]
    response = post(
        world.client("approver"),
        "/api/approvals/decide",
        {"decisions": decided, "bulk_id": bulk_id},
    )
    assert [one["status"] for one in response.json()["outcomes"]] == [200, 200]
    return bulk_id


def test_a_bulk_approval_can_be_undone_as_a_whole_without_scripts(world: World) -> None:
    bulk_id = approve_two(world)
    client = world.client("approver")
    html = client.get("/approvals/").content.decode()
    assert html.count(f'action="/approvals/bulks/{bulk_id}/undo/"') == 1
    assert "Approved: 2 cards" in html
    html = client.post(f"/approvals/bulks/{bulk_id}/undo/", follow=True).content.decode()
    assert WithheldBulk.objects.get().bulk_id.hex == bulk_id.replace("-", "")
    assert "0 are waiting again. 2 more are still coming back and will not start." in html
    assert f"/approvals/bulks/{bulk_id}/undo/" not in html


def test_the_api_shows_the_state_of_an_undone_bulk_approval(world: World) -> None:
    bulk_id = approve_two(world)
    client = world.client("approver")
    assert client.get(f"/api/approvals/bulks/{bulk_id}").status_code == 404
    told = post(client, f"/api/approvals/bulks/{bulk_id}/undo").json()
    assert told == {
        "bulk_id": bulk_id,
        "cards": 2,
        "started": 0,
        "waiting_again": 0,
        "left": 2,
        "votes": 0,
    }
    assert client.get(f"/api/approvals/bulks/{bulk_id}").json() == told
    assert world.client("outsider").get(f"/api/approvals/bulks/{bulk_id}").status_code == 404


def test_a_bulk_approval_of_more_than_two_hundred_cards_can_be_undone_as_a_whole(
    world: World,
) -> None:
    card, approver, soon = world.card(), world.member("approver"), Now() + timedelta(minutes=1)
    for number in range(1, 201):
        call = ToolCall.objects.get(pk=card.tool_call_id)
        call.pk, call.index, call.provider_call_id, call.idempotency_key = (
            None,
            number,
            f"call_{number}",
            f"{number}",
        )
        call.save()
        card.pk, card.tool_call = None, call
        card.save()
    decided = {
        "decided_by": approver.user,
        "decided_at": Now(),
        "start_after": soon,
        "valid_until": soon,
    }
    Approval.objects.update(status=ApprovalStatus.APPROVED, bulk_id=uuid4(), **decided)
    ToolCall.objects.update(status=CallStatus.APPROVED)
    (one,) = list_undoable(approver)
    assert one.count == 201
