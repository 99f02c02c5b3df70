"""POST /api/approvals/{id}/approve decides only the card that was shown, and only once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from agents.runs.models import Approval, ApprovalStatus, CallStatus, Run, RunStatus, ToolCall
from tests.world import World, post, problem

pytestmark = pytest.mark.django_db


def approve(world: World, card: Approval, username: str = "approver", **body: Any) -> Any:
    return post(
        world.client(username), f"/api/approvals/{card.pk}/approve", {"digest": card.digest, **body}
    )


def test_approving_a_card_allows_its_call_to_start(world: World) -> None:
    card = world.card()
    response = approve(world, card)
    assert response.status_code == 200, response.content
    shown = response.json()
    assert (shown["status"], shown["decided_by"], shown["next_approval_id"]) == (
        "approved",
        "approver",
        None,
    )
    assert shown["decided_at"].endswith("Z")
    assert ToolCall.objects.get(pk=card.tool_call_id).status == CallStatus.APPROVED
    assert Run.objects.get(pk=card.run_id).status == RunStatus.QUEUED


def test_the_number_of_queries_is_independent_of_other_waiting_cards(world: World) -> None:
    client, asked = world.client("approver"), []
    for _ in range(3):
        card = world.card()
        with CaptureQueriesContext(connection) as queries:
            response = post(client, f"/api/approvals/{card.pk}/approve", {"digest": card.digest})
        assert response.status_code == 200, response.content
        asked.append(len(queries))
        for _ in range(10):
            world.card()
    # Four of them load marks, such as those of stale records and of cards of the same targets.
    assert asked[1] == asked[2] <= 27, asked


def test_another_digest_is_refused_as_stale(world: World) -> None:
    card = world.card()
    response = post(
        world.client("approver"), f"/api/approvals/{card.pk}/approve", {"digest": "0" * 64}
    )
    assert problem(response, 412)["code"] == "stale_digest"
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING


def test_a_second_decision_is_refused_and_names_the_person_who_decided_first(world: World) -> None:
    card = world.card()
    approve(world, card)
    again = problem(approve(world, card, "admin"), 409)
    assert again["code"] == "decided"
    assert again["decided_by"] == "approver"
    assert again["decided_at"]
    assert again["approval_status"] == "approved"


def test_the_same_decision_sent_again_gets_the_same_response(world: World) -> None:
    card = world.card()
    first = approve(world, card, decision_id="click-1")
    second = approve(world, card, decision_id="click-1")
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json() == second.json()
    problem(approve(world, card, decision_id="click-2"), 409)
    problem(approve(world, card, "admin", decision_id="click-1"), 409)


def test_an_expired_card_is_refused_as_expired(world: World) -> None:
    card = world.card()
    Approval.objects.filter(pk=card.pk).update(expires_at=Now() - timedelta(seconds=1))
    assert problem(approve(world, card), 410)["code"] == "expired"


def test_the_response_states_when_the_call_starts_after_a_grace_period(world: World) -> None:
    shown = approve(world, world.card(), grace_s=60).json()
    assert shown["status"] == "approved"
    assert shown["start_after"] > shown["decided_at"]


@pytest.mark.parametrize("confirm", ["", "acme corp", "Initech"])
def test_approving_a_destructive_card_requires_the_typed_confirmation(
    world: World, confirm: str
) -> None:
    card = world.destructive_card()
    assert problem(approve(world, card, confirm=confirm), 422)["field"] == "confirm"
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING
    assert approve(world, card, confirm="Acme Corp").status_code == 200


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("digest", ""),
        ("digest", None),
        ("digest", "a\x00"),
        ("grace_s", -1),
        ("grace_s", 61),
        ("grace_s", "long"),
        ("decision_id", "x" * 201),
        ("confirm", "x" * 2_001),
        ("parms", {}),
    ],
)
def test_an_invalid_field_is_reported(world: World, field: str, value: Any) -> None:
    card = world.card()
    assert problem(approve(world, card, **{field: value}), 422)["field"] == field
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING


def test_the_two_person_rule_refuses_the_person_who_started_the_run(world: World) -> None:
    world.acme.four_eyes = True
    world.acme.save()
    card = world.card()
    Run.objects.filter(pk=card.run_id).update(created_by=world.users["approver"])
    problem(approve(world, card), 403)
    assert approve(world, card, "admin").status_code == 200
