"""POST /api/tool_calls/{id}/resolve records a person's report about a call with an unknown outcome,
and the reason."""

from __future__ import annotations

from typing import Any

import pytest

from agents.runs.models import CallStatus, ToolCall
from tests.world import World, post, problem

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("outcome", "status"), [("succeeded", "succeeded"), ("not_done", "failed")]
)
def test_a_person_can_resolve_a_call_with_an_unknown_outcome(
    world: World, outcome: str, status: str
) -> None:
    call = world.unknown_call()
    path = f"/api/tool_calls/{call.pk}/resolve"
    response = post(
        world.client("approver"), path, {"outcome": outcome, "reason": "I looked at the record."}
    )
    assert response.status_code == 200, response.content
    assert response.json()["status"] == status
    assert response.json()["run_id"] == str(call.run_id)


def test_only_an_unknown_outcome_can_be_resolved_and_only_once(world: World) -> None:
    client, body = world.client("approver"), {"outcome": "succeeded", "reason": "I looked."}
    done = world.call(world.run())
    problem(post(client, f"/api/tool_calls/{done.pk}/resolve", body), 409)
    call = world.unknown_call()
    assert post(client, f"/api/tool_calls/{call.pk}/resolve", body).status_code == 200
    problem(
        post(client, f"/api/tool_calls/{call.pk}/resolve", {**body, "outcome": "not_done"}), 409
    )
    assert ToolCall.objects.get(pk=call.pk).status == CallStatus.SUCCEEDED


def test_resolving_one_call_leaves_other_unknown_calls_open(world: World) -> None:
    call, other = world.unknown_call(), world.unknown_call()
    body = {"outcome": "succeeded", "reason": "I looked."}
    assert (
        post(world.client("approver"), f"/api/tool_calls/{call.pk}/resolve", body).status_code
        == 200
    )
    assert ToolCall.objects.get(pk=other.pk).status == CallStatus.OUTCOME_UNKNOWN


def test_a_late_effect_is_shown_on_its_call_and_can_be_acknowledged(world: World) -> None:
    call = world.late_call()
    client, path = world.client("approver"), f"/api/tool_calls/{call.pk}"
    shown = client.get(path).json()
    assert shown["status"] == "failed"
    assert shown["late_effect"]["result"]["summary"] == "Updated Acme Corp"
    (in_run,) = client.get(f"/api/runs/{call.run_id}").json()["tool_calls"]
    assert in_run["late_effect"]["result"]["summary"] == "Updated Acme Corp"
    (card,) = client.get("/api/approvals?status=pending").json()["items"]
    assert (card["kind"], card["call_id"]) == ("unknown", str(call.pk))
    problem(post(client, f"{path}/resolve", {"outcome": "not_done", "reason": "No."}), 409)
    response = post(
        client, f"{path}/resolve", {"outcome": "acknowledged", "reason": "I called them."}
    )
    assert (response.status_code, response.json()["status"]) == (200, "failed")
    decided = client.get(f"/api/approvals/{card['id']}").json()
    assert (decided["status"], decided["decided_by"], decided["reason"]) == (
        "answered",
        "approver",
        "I called them.",
    )
    problem(post(client, f"{path}/resolve", {"outcome": "acknowledged", "reason": "Again."}), 409)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("outcome", "maybe"),
        ("outcome", None),
        ("reason", ""),
        ("reason", "x" * 2_001),
        ("reason", "\x00"),
    ],
)
def test_an_invalid_field_is_reported(world: World, field: str, value: Any) -> None:
    call = world.unknown_call()
    body = {"outcome": "succeeded", "reason": "I looked.", field: value}
    response = post(world.client("approver"), f"/api/tool_calls/{call.pk}/resolve", body)
    assert problem(response, 422)["field"] == field
    assert ToolCall.objects.get(pk=call.pk).status == CallStatus.OUTCOME_UNKNOWN
