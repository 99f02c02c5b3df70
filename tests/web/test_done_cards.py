"""A card for a change that has already been made says so, and offers a button to dismiss the card
instead of approving it."""

from __future__ import annotations

import re

import pytest

from agents.runs.models import Approval, ApprovalStatus, CallStatus
from tests.world import World
from tools.office.records.models import Record, RecordChange

pytestmark = pytest.mark.django_db(transaction=True)  # effects are computed in separate threads


@pytest.fixture
def card(world: World) -> Approval:
    """A card for a change that has been made since the card was created."""
    record = world.records[0]
    card = world.card(params={"record_id": str(record.pk), "changes": {"status": "inactive"}})
    Record.objects.filter(pk=record.pk).update(status="inactive", version=2)
    RecordChange.objects.create(
        record=record,
        version=2,
        run_id=str(card.run_id),
        actor="Dana",
        after={"status": "inactive"},
    )
    return card


def read_text(world: World, card: Approval) -> str:
    html = world.client("approver").get(f"/approvals/{card.pk}/").content.decode()
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_the_page_says_that_the_effect_exists_and_who_caused_it(
    world: World, card: Approval
) -> None:
    text = read_text(world, card)
    assert "Already done: Acme Corp : status already inactive" in text.replace("“", "").replace(
        "”", ""
    )
    assert f"run {card.run_id} , just now" in text
    assert "Cannot run as shown" not in text
    assert "Approve:" not in text


def test_the_page_offers_to_approve_if_the_target_has_other_values(
    world: World, card: Approval
) -> None:
    Record.objects.filter(pk=world.records[0].pk).update(status="pending")
    text = read_text(world, card)
    assert "Already done" not in text
    assert "Approve:" in text


def test_dismissing_by_its_form_ends_the_card(world: World, card: Approval) -> None:
    html = world.client("approver").get(f"/approvals/{card.pk}/").content.decode()
    form = html.split('class="dismiss"')[1].split("</form>")[0]
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form))
    world.client("approver").post(f"/approvals/{card.pk}/dismiss/", fields)
    card.refresh_from_db()
    assert (card.status, card.tool_call.status) == (ApprovalStatus.ANSWERED, CallStatus.REJECTED)
    text = read_text(world, card)
    assert "Dismissed by" in text
    assert "There was nothing to do, so nothing was done." in text
    panel = world.client("viewer").get(f"/runs/{card.run_id}/").content.decode()
    assert 'class="status-icon good" role="img" aria-label="dismissed by approver"' in panel


def test_dismissing_over_rest_ends_the_card_once(world: World, card: Approval) -> None:
    client = world.client("approver")
    for _ in range(2):
        response = client.post(
            f"/api/approvals/{card.pk}/dismiss",
            {"digest": card.digest, "decision_id": "d"},
            "application/json",
        )
        assert (response.status_code, response.json()["status"]) == (200, "answered")


def test_a_card_that_would_change_something_cannot_be_dismissed(world: World) -> None:
    card = world.card()
    response = world.client("approver").post(
        f"/api/approvals/{card.pk}/dismiss", {"digest": card.digest}, "application/json"
    )
    assert response.status_code == 409
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING
