"""An agent key opens only the gateway: even with an approver's key, an agent can never decide
its own card."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import fields
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client

from agents.api import api
from agents.gateway import asks
from agents.gateway.asks import AskedRequest
from agents.gateway.keys import MAX_REQUESTS_PER_MINUTE, authenticate_key, issue_key, refuse_flood
from agents.gateway.models import AgentKey
from agents.gateway.receipts import Receipt, sign_receipt
from agents.gateway.requests import ToolRequest, record_request
from agents.platform.refusals import TooManyRequests
from agents.runs.models import Approval, ApprovalStatus
from agents.web.sockets.viewers import authenticate_viewer
from tests.features import feature
from tests.workshop import Workshop

OWN_PATHS = "/api/asks"


def list_operations() -> list[tuple[str, str]]:
    paths = api.get_openapi_schema(path_prefix="/api/")["paths"]
    return [
        (method, path)
        for path, operations in paths.items()
        for method in operations
        if "security" in operations[method]
    ]


class Approver:
    """An approver's agent key, and a card that it created."""

    def __init__(self, workshop: Workshop) -> None:
        self.secret = issue_key(workshop.approver, workshop.employee.pk, "Laptop", 30)[1]
        key = authenticate_key(self.secret)
        assert key is not None
        self.key: AgentKey = key
        record = workshop.record()
        params = {"record_id": str(record.pk), "changes": {"phone": "+49 1"}}
        self.call = record_request(key, None, ToolRequest("data.updateRecord", params))
        self.card = Approval.objects.get()

    def send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        ids = {
            name: str(self.card.pk)
            for name in ("approval_id", "grant_id", "notice_id", "employee_id", "bulk_id")
        }
        address = path.format(
            **ids,
            run_id=self.card.run_id,
            call_id=self.call.pk,
            ask_id="1",
            name="data.searchRecords",
        )
        body = body or {
            "digest": self.card.digest,
            "outcome": "succeeded",
            "reason": "I am sure.",
            "text": "Yes.",
        }
        return Client().generic(
            method.upper(),
            address,
            json.dumps(body),
            "application/json",
            headers={"Authorization": f"Bearer {self.secret}"},
        )


@pytest.fixture
def approver(workshop: Workshop) -> Approver:
    return Approver(workshop)


@feature("Agents elsewhere", "A key decides nothing, on any path", "agents/api/auth.py")
@pytest.mark.parametrize(
    ("method", "path"), [each for each in list_operations() if not each[1].startswith(OWN_PATHS)]
)
def test_an_agent_key_is_refused_by_all_other_operations(
    approver: Approver, method: str, path: str
) -> None:
    assert approver.send(method, path).status_code == 401
    assert Approval.objects.get().status == ApprovalStatus.PENDING


def test_an_agent_key_is_refused_by_all_pages_of_the_admin(approver: Approver) -> None:
    """tests/web/test_access.py tries all other pages."""
    for path in ("", f"approvals/approval/{approver.card.pk}/change/", "gateway/agentkey/"):
        response = approver.send("post", f"/admin/{path}")
        assert (response.status_code, "login" in response["Location"]) == (302, True)
    assert Approval.objects.get().status == ApprovalStatus.PENDING


def test_an_agent_key_is_refused_by_all_sockets(approver: Approver) -> None:
    scope = {"headers": [(b"authorization", f"Bearer {approver.secret}".encode())]}
    assert async_to_sync(authenticate_viewer)(scope) is None


def test_an_agent_key_can_cancel_its_own_waiting_ask_but_not_approve_it(approver: Approver) -> None:
    ask, _ = asks.submit(approver.key, AskedRequest("deploy", {}, "write"))
    card = Approval.objects.latest("pk")
    names = dict.fromkeys((each.name for each in fields(Receipt)), "")
    claims: Any = {**names, "ask": str(ask.pk), "decision": "approved", "iat": 0, "exp": 2**40}
    forged = sign_receipt(Receipt(**claims))
    bodies = {"redeem": {"receipt": forged}, "outcome": {"outcome": "succeeded"}}
    refused = {
        act: approver.send("post", f"/api/asks/{ask.pk}/{act}", body)
        for act, body in bodies.items()
    }
    assert {act: response.status_code for act, response in refused.items()} == {
        "redeem": 409,
        "outcome": 409,
    }
    card.refresh_from_db()
    assert (card.status, card.decided_by) == (ApprovalStatus.PENDING, None)
    approver.send("post", f"/api/asks/{ask.pk}/cancel", {})
    card.refresh_from_db()
    assert (card.status, card.decided_by) == (ApprovalStatus.CANCELLED, None)


def test_a_request_for_a_tool_that_would_decide_a_card_is_rejected(approver: Approver) -> None:
    for tool in ("gadget.approve", "approvals.approve", "gadget.decide"):
        assert record_request(
            approver.key, None, ToolRequest(tool, {"approval_id": str(approver.card.pk)})
        ).status == ("rejected")
    assert Approval.objects.get().status == ApprovalStatus.PENDING


def test_a_flood_of_requests_with_one_key_is_refused(approver: Approver) -> None:
    responses = [approver.send("get", "/api/asks/1") for _ in range(3)]
    assert {response.status_code for response in responses} == {404}
    with suppress(TooManyRequests):
        for _ in range(MAX_REQUESTS_PER_MINUTE):
            refuse_flood(approver.key)
    refused = approver.send("get", "/api/asks/1")
    assert refused.status_code == 429
    assert 1 <= int(refused["Retry-After"]) <= 60
