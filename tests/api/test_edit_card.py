"""POST /api/approvals/{id}/approve with `params` does not approve the call: it creates a new card,
which must be decided."""

from __future__ import annotations

from typing import Any

import pytest

from agents.employees.models import Grant
from agents.runs.models import Approval, ApprovalStatus, CallStatus, ToolCall
from tests.world import UPDATE, World, change, post, problem

pytestmark = pytest.mark.django_db(transaction=True)


def edit(world: World, card: Approval, params: Any) -> Any:
    body = {"digest": card.digest, "params": params}
    return post(world.client("approver"), f"/api/approvals/{card.pk}/approve", body)


def test_an_edited_card_waits_and_the_old_card_links_to_it(world: World) -> None:
    card = world.card()
    response = edit(world, card, change(world.records[0], "+1 555 0199"))
    assert response.status_code == 200, response.content
    old = response.json()
    assert (old["id"], old["status"]) == (str(card.pk), "superseded")
    new = world.client("viewer").get(f"/api/approvals/{old['next_approval_id']}").json()
    assert (new["status"], new["call_id"]) == ("pending", old["call_id"])
    assert new["params"]["changes"]["phone"] == "+1 555 0199"
    assert new["preview"]["targets"][0]["after"]["phone"] == "+1 555 0199"
    assert new["digest"] != card.digest
    assert old["params"] == change(world.records[0], "+1 555 0100"), "a card keeps what it showed"
    call = ToolCall.objects.get(pk=card.tool_call_id)
    assert call.status == CallStatus.AWAITING_APPROVAL
    assert call.model_params == change(world.records[0], "+1 555 0100")


def test_the_old_digest_is_refused_after_an_edit(world: World) -> None:
    card = world.card()
    new = edit(world, card, change(world.records[0], "+1 555 0199")).json()["next_approval_id"]
    client = world.client("approver")
    problem(post(client, f"/api/approvals/{card.pk}/approve", {"digest": card.digest}), 409)
    problem(post(client, f"/api/approvals/{new}/approve", {"digest": card.digest}), 412)
    digest = Approval.objects.get(pk=int(new)).digest
    assert (
        post(client, f"/api/approvals/{new}/approve", {"digest": digest}).json()["status"]
        == "approved"
    )


INVALID_PARAMS: list[Any] = [
    {},
    {"record_id": "1"},
    {"record_id": "1", "changes": {"phone": 7}},
    {"record_id": "999999", "changes": {"phone": "+1 555 0199"}},
    {"record_id": "1", "changes": {"color": "red"}},
    {"record_id": "1", "changes": {"phone": "a\x00b"}},
    {"record_id": "1", "changes": {"phone": "\ud800"}},
    "text",
    ["list"],
]


def test_invalid_params_leave_the_card_unchanged(world: World) -> None:
    card = world.card()
    for params in INVALID_PARAMS:
        assert "params" in problem(edit(world, card, params), 422)["field"]
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING
    assert Approval.objects.count() == 1


def test_a_card_of_a_tool_that_is_no_longer_granted_cannot_be_edited(world: World) -> None:
    card = world.card()
    Grant.objects.filter(tool=UPDATE).delete()
    problem(edit(world, card, change(world.records[0], "+1 555 0199")), 422)
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING


def test_an_edit_with_another_digest_is_refused(world: World) -> None:
    card = world.card()
    body = {"digest": "0" * 64, "params": change(world.records[0], "+1 555 0199")}
    problem(post(world.client("approver"), f"/api/approvals/{card.pk}/approve", body), 412)
    assert Approval.objects.count() == 1


def test_nan_in_the_params_is_refused(world: World) -> None:
    card = world.card()
    body = f'{{"digest": "{card.digest}", "params": {{"record_id": "1", "changes": {{"score": NaN}}}}}}'
    client = world.client("approver")
    response = client.post(
        f"/api/approvals/{card.pk}/approve", body, content_type="application/json"
    )
    assert "NaN" in problem(response, 400)["detail"]
