"""Test data: two organizations with people of every role, employees and records, and clients that
send requests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client
from django.test.client import ClientHandler

from agents.accounts.models import Membership, Organization, Role
from agents.employees.models import Employee, Grant, ModelProvider, ProviderKind
from agents.employees.toolboxes import get_installed_toolbox
from agents.gateway.asks import AskedRequest, submit
from agents.gateway.keys import authenticate_key, issue_key
from agents.gateway.models import Ask
from agents.runs.engine.cards import build_card, compute_effect_here, seal
from agents.runs.engine.context import load_context
from agents.runs.engine.recovery import record_late_effect
from agents.runs.engine.transaction import run_transaction
from agents.runs.models import (
    ENDED,
    Approval,
    ApprovalStatus,
    CallStatus,
    ExitReason,
    Message,
    Run,
    RunStatus,
    ToolCall,
)
from agents.standing_grants.making import make_grant
from agents.standing_grants.models import StandingGrant
from agents.standing_grants.proposals import ProposedGrant
from agents.triggers.changes import TriggerTerms, make_trigger
from agents.triggers.models import ReceivedMessage, ReceivedStatus, Trigger
from agents.webhooks.changes import WebhookTerms, make_webhook
from agents.webhooks.models import WebhookDelivery
from tests.scripts import write_script
from tools.contract import ToolResult
from tools.office.records.models import Record
from tools.toolbox.conditions import Condition, Rule

UPDATE = "data.updateRecord"
DELETE = "data.bulkDelete"
SEARCH = "data.searchRecords"
SCRIPT = "clerk"

LENIENT = ClientHandler(enforce_csrf_checks=False)
STRICT = ClientHandler(enforce_csrf_checks=True)
"""The handler that checks CSRF tokens. All clients that need it share this one, because loading the
middleware is the slowest part of a test."""


@dataclass
class World:
    """The test data: the organization Acme, in which everything happens, and the organization
    Globex, whose member `outsider` must not see anything of Acme."""

    acme: Organization
    globex: Organization
    users: dict[str, User]
    employee: Employee
    others_employee: Employee
    records: list[Record] = field(default_factory=list)

    def client(self, username: str, needs_csrf: bool = False) -> Client:
        """Return a client that is logged in as this person."""
        client = nobody(needs_csrf)
        client.force_login(self.users[username])
        return client

    def member(self, username: str) -> Membership:
        return self.users[username].memberships.get()

    def run(self, status: RunStatus = RunStatus.WAITING, **more: Any) -> Run:
        """Create a run of Acme's employee with this status."""
        if status in ENDED:
            more = {
                "finished_at": Now(),
                "exit_reason": ExitReason.FINAL_ANSWER,
                "answer": "Done.",
                **more,
            }
        task = more.pop("task", "Set the phone of Acme Corp.")
        run = Run.objects.create(
            organization=self.acme,
            employee=self.employee,
            created_by=self.users["operator"],
            task=task,
            status=status,
            pass_number=1,
            **more,
        )
        Message.objects.create(run=run, number=1, author=self.users["operator"], text=task)
        return run

    def call(self, run: Run, tool: str = SEARCH, **more: Any) -> ToolCall:
        """Create a call of the run's first pass; by default it has succeeded."""
        index = run.tool_calls.count()
        values = {
            "status": CallStatus.SUCCEEDED,
            "level": "read",
            "result": success({"records": []}),
            "content": "Found 0 records",
            "finished_at": Now(),
            "duration_ms": 12,
            "signature": f"{index:064}",
            **more,
        }
        return ToolCall.objects.create(
            organization=run.organization,
            run=run,
            pass_number=1,
            index=index,
            provider_call_id=f"call_{index}",
            tool=tool,
            params_hash="0" * 64,
            **values,
        )

    def card(
        self, run: Run | None = None, tool: str = UPDATE, params: dict[str, Any] | None = None
    ) -> Approval:
        """Create a pending card with the engine's own functions; by default, its call sets the
        phone of the first record."""
        run = run or self.run()
        found = get_installed_toolbox().get_tool(tool)
        assert found is not None
        given = params or change(self.records[0], "+1 555 0100")
        canonical = found.check_params(given)
        index = run.tool_calls.count()
        call = ToolCall(
            organization=run.organization,
            run=run,
            pass_number=1,
            index=index,
            level=found.level.value,
        )
        call.provider_call_id, call.status = f"call_{index}", CallStatus.AWAITING_APPROVAL
        seal(call, found, canonical)
        effect = compute_effect_here(
            found, canonical, load_context(run.pk).build_tool_context(call)
        )
        call.save()
        card = build_card(call, effect, "this changes data", days=7)
        card.save()
        return Approval.objects.get(pk=card.pk)

    def standing_grant(self) -> StandingGrant:
        """Create a standing grant in the approver's name, for updates of a record that does not
        exist."""
        terms = (Condition("record_id", Rule.EQUALS, "0"),)
        draft = ProposedGrant(UPDATE, self.employee.pk, None, ("record_id",), terms)
        return make_grant(self.member("approver"), draft)

    def ask(self) -> Ask:
        """Create an ask by an agent that uses the operator's key."""
        _, secret = issue_key(self.member("operator"), self.employee.pk, "Laptop", 30)
        key = authenticate_key(secret)
        assert key is not None
        return submit(key, AskedRequest("deploy", {"version": "1"}, "write"))[0]

    def trigger(self, **more: Any) -> Trigger:
        """Create a trigger for messages from GitHub, in the operator's name."""
        terms = {
            "name": "Issues",
            "scheme": "github",
            "task": "Triage {{ payload.issue.title }}.",
            **more,
        }
        return make_trigger(
            self.member("operator"), TriggerTerms(employee_id=self.employee.pk, **terms)
        )[0]

    def received(
        self, trigger: Trigger, payload: str = '{"issue": {"title": "Acme is down"}}'
    ) -> ReceivedMessage:
        """Create a message that the trigger received but filtered out, so that it
        started no run."""
        columns = {"status": ReceivedStatus.FILTERED, "reason": "action is closed, not opened"}
        return ReceivedMessage.objects.create(trigger=trigger, payload=payload, **columns)

    def webhook_delivery(self) -> WebhookDelivery:
        """Create a webhook in the admin's name, with a failed delivery."""
        terms = WebhookTerms("Acme's warehouse", "https://example.com/x", ["run.started"])
        webhook, _ = make_webhook(self.member("admin"), terms)
        columns = {
            "status": "failed",
            "ended_at": webhook.created_at,
            "problem": "Acme responded with 500",
        }
        return WebhookDelivery.objects.create(
            webhook=webhook, kind="run.started", run_id=1, seq=1, **columns
        )

    def destructive_card(self, run: Run | None = None) -> Approval:
        """Create a card that would delete the first record."""
        return self.card(run, DELETE, {"record_ids": [str(self.records[0].pk)]})

    def unknown_call(self) -> ToolCall:
        """Create a write with an unknown outcome, and its card."""
        card = self.card(self.run(RunStatus.NEEDS_ATTENTION))
        Approval.objects.filter(pk=card.pk).update(kind="unknown")
        ToolCall.objects.filter(pk=card.tool_call_id).update(
            status=CallStatus.OUTCOME_UNKNOWN,
            attempts=1,
            exec_epoch=1,
            deadline_at=Now() + timedelta(seconds=30),
        )
        return ToolCall.objects.get(pk=card.tool_call_id)

    def late_call(self, says: str = "Updated Acme Corp", *, is_repeated: bool = False) -> ToolCall:
        """Create a finished run's write that was marked as not done and later reported success, and
        the write's card; return the call.

        With `is_repeated`, the run's next call requested the same write again.
        """
        card = self.card(self.run(RunStatus.SUCCEEDED))
        Approval.objects.filter(pk=card.pk).update(
            status=ApprovalStatus.CONSUMED,
            decided_by=self.users["approver"],
            decided_at=Now(),
            consumed_at=Now(),
        )
        ToolCall.objects.filter(pk=card.tool_call_id).update(
            status=CallStatus.FAILED,
            attempts=1,
            exec_epoch=1,
            finished_at=Now(),
            content="It was not done.",
        )
        call = ToolCall.objects.get(pk=card.tool_call_id)
        if is_repeated:
            self.call(call.run, call.tool, signature=call.signature, attempts=1)
        with run_transaction(card.run_id) as tx:
            assert record_late_effect(tx, call, 1, ToolResult.ok({"id": says}, says))
        return ToolCall.objects.get(pk=call.pk)


def make_world() -> World:
    """Create the test data. Acme has a viewer, an operator, an approver and an admin; Globex has
    the outsider; the stranger does not belong to any organization."""
    acme = Organization.objects.create(name="Acme", slug="acme")
    globex = Organization.objects.create(name="Globex", slug="globex")
    users = {
        name: User.objects.create_user(name) for name in (*Role.values, "outsider", "stranger")
    }
    for role in Role.values:
        Membership.objects.create(organization=acme, user=users[role], role=role)
    Membership.objects.create(organization=globex, user=users["outsider"], role=Role.ADMIN)
    employee, others = make_employee(acme, "Dana"), make_employee(globex, "Hank")
    for tool in (UPDATE, DELETE, SEARCH):
        Grant.objects.create(employee=employee, tool=tool)
    names = ("Acme Corp", "Initech", "Umbrella")
    records = [Record.objects.create(organization=acme, name=name, region="EU") for name in names]
    return World(acme, globex, users, employee, others, records)


def nobody(needs_csrf: bool = False) -> Client:
    """Return a client without a logged-in person."""
    client = Client(enforce_csrf_checks=needs_csrf)
    client.handler = STRICT if needs_csrf else LENIENT
    return client


def make_employee(organization: Organization, name: str) -> Employee:
    provider = ModelProvider.objects.create(
        organization=organization, name="Script", kind=ProviderKind.SCRIPTED
    )
    return Employee.objects.create(
        organization=organization,
        name=name,
        job_title="Data steward",
        provider=provider,
        model=write_script("scripts: [{task: ., answer: Done.}]", SCRIPT),
        example_tasks=["Tidy up."],
    )


def change(record: Record, phone: str) -> dict[str, Any]:
    """Return params with which data.updateRecord changes the record's phone."""
    return {"record_id": str(record.pk), "changes": {"phone": phone}}


def success(data: Any, **more: Any) -> dict[str, Any]:
    """Return a successful result as a call stores it."""
    plain = {
        "success": True,
        "summary": "Found",
        "data": data,
        "markdown": "",
        "error": None,
        "metadata": {},
    }
    return {**plain, **more}


def post(client: Client, path: str, body: Any = None, **headers: Any) -> Any:
    """Send a POST with this body as JSON, or without a body."""
    if body is None:
        return client.generic("POST", path, headers=headers)
    return client.post(path, body, content_type="application/json", headers=headers)


def pages(client: Client, path: str, limit: int, query: str = "") -> Iterator[list[dict[str, Any]]]:
    """Yield the items of each page of a list, requested one by one."""
    cursor: str | None = ""
    while cursor is not None:
        answer = client.get(f"{path}?limit={limit}&cursor={cursor}&{query}").json()
        assert len(answer["items"]) <= limit
        yield answer["items"]
        cursor = answer["next_cursor"]


def streamed(response: Any) -> str:
    """Return the whole text of a streamed response. This also works while a browser's event loop
    runs in this thread."""

    async def parts() -> list[bytes]:
        return [part async for part in response]

    loop = asyncio.events._get_running_loop()
    asyncio.events._set_running_loop(None)
    try:
        return b"".join(async_to_sync(parts)()).decode()
    finally:
        asyncio.events._set_running_loop(loop)


def problem(response: Any, status: int) -> dict[str, Any]:
    """Check that the response is a problem document with this status; return the document."""
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert {"type", "title", "status", "detail", "code"} <= body.keys()
    assert body["status"] == status
    assert body["detail"]
    return body
