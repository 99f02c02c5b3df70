"""Undoing an approval on a page creates a new card and redirects to it."""

from __future__ import annotations

import pytest

from agents.runs.models import Approval, ApprovalStatus
from tests.world import World

pytestmark = pytest.mark.django_db(transaction=True)  # previews run in separate threads


@pytest.mark.parametrize(
    ("came_from", "goes_to"),
    [
        ("/approvals/{old}/", "/approvals/{new}/"),
        ("/approvals/?tool=x&card={old}", "/approvals/?tool=x&card={new}"),
        ("/runs/{run}/", "/runs/{run}/"),
        ("/login/", "/runs/{run}/"),
    ],
)
def test_undo_redirects_to_the_new_card(world: World, came_from: str, goes_to: str) -> None:
    card = world.card()
    client, places = world.client("approver"), {"old": card.pk, "run": card.run_id}
    client.post(f"/approvals/{card.pk}/approve/", {"digest": card.digest, "grace_s": "60"})
    referer = f"http://testserver{came_from.format(**places)}"
    response = client.post(f"/approvals/{card.pk}/undo/", headers={"referer": referer})
    (fresh,) = Approval.objects.filter(tool_call=card.tool_call, status=ApprovalStatus.PENDING)
    assert fresh.pk != card.pk
    assert response["Location"] == f"{goes_to.format(**places, new=fresh.pk)}#card-{fresh.pk}"
