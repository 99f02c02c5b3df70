"""POST /api/runs/{id}/cancel stops a run, closes its open cards and keeps ended calls unchanged."""

from __future__ import annotations

import pytest

from agents.runs.models import Approval, ApprovalStatus, RunStatus
from tests.world import World, post, problem

pytestmark = pytest.mark.django_db


def test_cancelling_a_waiting_run_cancels_its_cards(world: World) -> None:
    card = world.card()
    response = post(world.client("operator"), f"/api/runs/{card.run_id}/cancel")
    assert response.status_code == 200
    run = response.json()
    assert (run["status"], run["exit_reason"]) == ("cancelled", "cancelled")
    assert run["tool_calls"][0]["status"] == "cancelled"
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.CANCELLED


def test_a_queued_run_can_be_cancelled(world: World) -> None:
    run = world.run(RunStatus.QUEUED)
    assert (
        post(world.client("operator"), f"/api/runs/{run.pk}/cancel").json()["status"] == "cancelled"
    )


def test_a_card_of_a_cancelled_run_cannot_be_approved(world: World) -> None:
    card = world.card()
    post(world.client("operator"), f"/api/runs/{card.run_id}/cancel")
    response = post(
        world.client("approver"), f"/api/approvals/{card.pk}/approve", {"digest": card.digest}
    )
    problem(response, 409)


@pytest.mark.parametrize("status", [RunStatus.SUCCEEDED, RunStatus.FAILED])
def test_an_ended_run_stays_unchanged(world: World, status: RunStatus) -> None:
    run = world.run(status)
    problem(post(world.client("operator"), f"/api/runs/{run.pk}/cancel"), 409)
    assert world.client("viewer").get(f"/api/runs/{run.pk}").json()["status"] == status
