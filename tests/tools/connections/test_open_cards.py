"""A tool's definition changes while a card is open: only what a card shows can run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client

from agents.accounts.models import Organization
from agents.employees.toolboxes import load_toolbox
from agents.runs.models import Approval, ApprovalStatus, CallStatus, Run, RunStatus
from tests.admin.rows import address, confirmed, filled_form
from tests.features import feature
from tests.tools.connections.api import Api, operation
from tests.tools.connections.connecting import (
    MISBEHAVING,
    connect_api,
    connect_program,
    grant,
    leave,
    offer,
    read,
    row_of,
    set_credentials,
    take,
)
from tests.workshop import Workshop, asking, call, calls, error_code, payloads, statuses
from tools.connections.changes import bump_tools_version
from tools.connections.models import Source
from tools.contract import Level

pytestmark = pytest.mark.django_db(transaction=True)

ADD = "crm.addContact"
NAME = {"type": "string", "description": "Of the contact"}

REASONS = {
    "gone": "no longer exists: “crm” no longer describes it",
    "left": "There is no tool 'crm.addContact'",
    "off": "an admin has switched off “crm”",
    "deleted": "There is no tool 'crm.addContact'",
}


@pytest.fixture
def source(workshop: Workshop, api: Api) -> Source:
    source = connect_api(workshop, api)
    offer(workshop, source, ADD)
    return source


@pytest.fixture
def run(workshop: Workshop, source: Source) -> Run:
    """A run that waits for a decision on an outside write."""
    workshop.play(asking(call(ADD, name="Ada")))
    return workshop.work()


def describe_otherwise(
    api: Api, summary: str = "Add a contact and greet it", **fields: Any
) -> None:
    api.paths["/contacts"]["post"] = operation("addContact", summary, **(fields or {"name": NAME}))


class TestOpenCardOfAnApi:
    @feature(
        "Connected sources",
        "If a definition or an address changes while a card is open, the call needs a new approval",
        "tools/connections/changes.py",
    )
    def test_is_replaced_if_the_definition_changed_and_sends_one_request_once_approved(
        self, workshop: Workshop, api: Api, source: Source, run: Run
    ) -> None:
        first = workshop.card(run)
        assert first.sentence == f"Send: “POST /contacts” at “{api.url.removeprefix('http://')}”"
        describe_otherwise(api)
        read(source)
        workshop.approve(first)
        run = workshop.drive(run)
        assert (run.status, statuses(run)) == (RunStatus.WAITING, [CallStatus.AWAITING_APPROVAL])
        first.refresh_from_db()
        fresh = workshop.card(run)
        assert (first.status, fresh.sequence) == (ApprovalStatus.SUPERSEDED, 2)
        assert fresh.digest != first.digest
        assert "definition" in fresh.why or "changed" in fresh.why
        assert payloads(run, "approval_decided")[-1]["next_approval_id"] == str(fresh.pk)
        assert api.received == []
        workshop.approve(fresh)
        run = workshop.drive(run)
        assert (run.status, statuses(run)) == (RunStatus.SUCCEEDED, [CallStatus.SUCCEEDED])
        (request,) = api.received
        (row,) = calls(run)
        assert (request.method, request.path, request.json()) == (
            "POST",
            "/contacts",
            {"name": "Ada"},
        )
        assert request.json() == row.params
        assert row.attempts == 1

    def test_is_cancelled_if_the_tool_now_requires_another_param(
        self, workshop: Workshop, api: Api, source: Source, run: Run
    ) -> None:
        describe_otherwise(api, name=NAME, email={"type": "string"})
        read(source)
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        (row,) = calls(run)
        assert (row.status, error_code(row), row.attempts) == (
            CallStatus.REJECTED,
            "MISSING_PARAM",
            0,
        )
        assert "email" in str(row.result)
        assert Approval.objects.get(run=run).status == ApprovalStatus.CANCELLED
        assert api.received == []

    def test_is_kept_if_only_the_title_changed(
        self, workshop: Workshop, api: Api, source: Source, run: Run
    ) -> None:
        api.title = "Contacts of ours"
        read(source)
        workshop.approve(workshop.card(run))
        assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED]
        assert len(api.received) == 1

    def test_is_replaced_if_the_base_address_changed(
        self, workshop: Workshop, api: Api, source: Source, run: Run
    ) -> None:
        Source.objects.filter(pk=source.pk).update(base_url=f"{api.url}/v2")
        bump_tools_version(source.organization_id)
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        assert statuses(run) == [CallStatus.AWAITING_APPROVAL]
        assert api.received == []
        workshop.approve(workshop.card(run))
        workshop.drive(run)
        assert [request.path for request in api.received] == ["/v2/contacts"]

    @feature(
        "Connected sources",
        "Open cards ask again for another account, but not for a new secret of the same account",
        "tools/sources/openapi/tool.py, tools/connections/servers.py",
    )
    def test_is_replaced_if_another_account_was_chosen(
        self, workshop: Workshop, api: Api, source: Source
    ) -> None:
        for service in ("sales", "payroll"):
            set_credentials(workshop.organization, service, token=f"token-of-{service}")
        Source.objects.filter(pk=source.pk).update(authentication="bearer", service="sales")
        bump_tools_version(source.organization_id)
        workshop.play(asking(call(ADD, name="Ada")))
        run = workshop.work()
        first = workshop.card(run)
        set_in_admin(source, service="payroll")
        workshop.approve(first)
        run = workshop.drive(run)
        first.refresh_from_db()
        assert (first.status, statuses(run)) == (
            ApprovalStatus.SUPERSEDED,
            [CallStatus.AWAITING_APPROVAL],
        )
        assert api.received == []
        workshop.approve(workshop.card(run))
        workshop.drive(run)
        assert [request.headers["authorization"] for request in api.received] == [
            "Bearer token-of-payroll"
        ]

    def test_is_kept_if_only_the_accounts_secret_changed(
        self, workshop: Workshop, api: Api, source: Source
    ) -> None:
        set_credentials(workshop.organization, "crm", token="token-of-monday")
        Source.objects.filter(pk=source.pk).update(authentication="bearer")
        bump_tools_version(source.organization_id)
        workshop.play(asking(call(ADD, name="Ada")))
        run = workshop.work()
        set_credentials(workshop.organization, "crm", token="token-of-tuesday")
        workshop.approve(workshop.card(run))
        assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED]
        assert [request.headers["authorization"] for request in api.received] == [
            "Bearer token-of-tuesday"
        ]

    @pytest.mark.parametrize(
        "change",
        [
            {"authentication": "basic"},
            {"key_name": "X-Other-Key"},
            {"key_place": "query"},
            {"token_url": "https://login.example.com/token"},
            {"scopes": "write"},
        ],
    )
    def test_has_a_tool_whose_definition_hash_changes_with_the_sources_authentication(
        self, workshop: Workshop, source: Source, change: dict[str, str]
    ) -> None:
        before = promise_of(workshop, ADD)
        Source.objects.filter(pk=source.pk).update(**change)
        bump_tools_version(source.organization_id)
        assert promise_of(workshop, ADD) != before

    @pytest.mark.parametrize("how", ["gone", "left", "off", "deleted"])
    def test_is_cancelled_without_sending_a_request_if_the_tool_is_no_longer_available(
        self, workshop: Workshop, api: Api, source: Source, run: Run, how: str
    ) -> None:
        take_away(api, source, how)
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        (row,) = calls(run)
        assert (row.status, error_code(row), row.attempts) == (
            CallStatus.REJECTED,
            "TOOL_NOT_FOUND",
            0,
        )
        assert Approval.objects.get(run=run).status == ApprovalStatus.CANCELLED
        assert run.status == RunStatus.SUCCEEDED
        assert api.received == []


class TestOpenCardOfAServer:
    @pytest.fixture
    def definitions(self, tmp_path: Path) -> Path:
        """A file with the tool definitions that the server returns; the server reads it at each
        listing."""
        file = tmp_path / "definitions.json"
        say(file, "Keeps a note.")
        return file

    @pytest.fixture
    def server(self, workshop: Workshop, definitions: Path, tmp_path: Path) -> Source:
        command = [
            sys.executable,
            str(MISBEHAVING),
            f"definitions={definitions}",
            f"calls={tmp_path / 'calls'}",
        ]
        source = connect_program(workshop, command, "notes")
        offer(workshop, source, "notes.keep", level=Level.WRITE)
        return source

    def test_leads_to_a_rejected_call_while_the_changed_tool_is_in_quarantine(
        self, workshop: Workshop, server: Source, definitions: Path, tmp_path: Path
    ) -> None:
        workshop.play(asking(call("notes.keep", text="a")))
        run = workshop.work()
        say(definitions, "Keeps a note, and tells the world.")
        read(server)
        assert row_of(server, "notes.keep").state == "quarantined"
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        (row,) = calls(run)
        assert (row.status, error_code(row), row.attempts) == (
            CallStatus.REJECTED,
            "TOOL_NOT_FOUND",
            0,
        )
        assert "an admin must accept it" in row.content
        assert not (tmp_path / "calls").exists()

    def test_is_replaced_after_an_accepted_change_and_its_call_runs_once(
        self, workshop: Workshop, server: Source, definitions: Path, tmp_path: Path
    ) -> None:
        workshop.play(asking(call("notes.keep", text="a")))
        run = workshop.work()
        say(definitions, "Keeps a note, and tells the world.")
        read(server)
        take(server, "notes.keep", level=Level.WRITE)
        first = workshop.card(run)
        workshop.approve(first)
        run = workshop.drive(run)
        fresh = workshop.card(run)
        assert (fresh.sequence, statuses(run)) == (2, [CallStatus.AWAITING_APPROVAL])
        assert not (tmp_path / "calls").exists()
        workshop.approve(fresh)
        assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED]
        assert (tmp_path / "calls").read_text() == "keep\n"

    @pytest.mark.parametrize(
        "change", [{"service": "payroll"}, {"environment": {"KEY": "payroll_token"}}]
    )
    def test_has_a_tool_whose_definition_hash_changes_with_the_sources_account(
        self, workshop: Workshop, server: Source, change: dict[str, Any]
    ) -> None:
        for service in ("notes", "payroll"):
            set_credentials(
                workshop.organization,
                service,
                token="token-of-ours",
                payroll_token="token-of-payroll",
            )
        Source.objects.filter(pk=server.pk).update(environment={"KEY": "token"})
        bump_tools_version(server.organization_id)
        before = promise_of(workshop, "notes.keep")
        Source.objects.filter(pk=server.pk).update(**change)
        bump_tools_version(server.organization_id)
        assert promise_of(workshop, "notes.keep") != before


class TestAnUnavailableTool:
    @feature(
        "Connected sources",
        "A quarantined tool cannot be called, even with a grant",
        "tools/connections/connected_tools.py",
    )
    @pytest.mark.parametrize("how", ["gone", "left", "off", "deleted"])
    def test_cannot_be_called_even_if_it_is_granted(
        self, workshop: Workshop, api: Api, source: Source, how: str
    ) -> None:
        take_away(api, source, how)
        workshop.play(asking(call(ADD, name="Ada")))
        run = workshop.work()
        (row,) = calls(run)
        assert (row.status, error_code(row)) == (CallStatus.REJECTED, "TOOL_NOT_FOUND")
        assert REASONS[how] in row.content
        assert api.received == []

    def test_that_is_enabled_but_not_granted_cannot_be_called(
        self, workshop: Workshop, api: Api, source: Source
    ) -> None:
        take(source, "crm.listContacts")
        workshop.play(asking(call("crm.listContacts")))
        run = workshop.work()
        assert (statuses(run), error_code(calls(run)[0])) == (
            [CallStatus.REJECTED],
            "NOT_PERMITTED",
        )
        grant(workshop, "crm.listContacts")
        assert statuses(workshop.work()) == [CallStatus.SUCCEEDED]
        assert [request.path for request in api.received] == ["/contacts"]


def set_in_admin(source: Source, **changes: str) -> None:
    """Change the source in its form, and confirm every question."""
    client, path = Client(), address(source, "change")
    client.force_login(User.objects.create_superuser("root"))
    sent = filled_form(client, path, file=None, **changes)
    assert client.post(path, confirmed(client, path, sent)).status_code == 302
    LogEntry.objects.all().delete()  # the workshop clears only Gadget's own tables


def promise_of(workshop: Workshop, tool: str) -> str:
    # Reading the row tells this process the newest version, which `load_toolbox` then loads.
    organization = Organization.objects.get(pk=workshop.organization.pk)
    found = load_toolbox(organization.pk).get_tool(tool)
    assert found is not None
    return found.definition_hash


def say(definitions: Path, text: str) -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    definitions.write_text(
        json.dumps([{"name": "keep", "description": text, "inputSchema": schema}])
    )


def take_away(api: Api, source: Source, how: str) -> None:
    """Make the tool unavailable: the API drops it ("gone"), an admin stops offering it ("left"), or
    its source is switched "off" or "deleted"."""
    if how == "gone":
        del api.paths["/contacts"]["post"]
        read(source)
    elif how == "left":
        leave(source, ADD)
    elif how == "off":
        Source.objects.filter(pk=source.pk).update(is_active=False)
        bump_tools_version(source.organization_id)
    else:
        bump_tools_version(source.organization_id)
        source.delete()
