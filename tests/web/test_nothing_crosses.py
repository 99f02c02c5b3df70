"""Every page is byte-identical whether or not another organization has rows."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from django.contrib.admin import site
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from agents.accounts import audit, invitations
from agents.accounts.models import Credential, Organization
from agents.employees.models import Employee, Grant, ToolRule
from agents.gateway.keys import issue_key
from agents.insight.models import ToolFigures
from agents.runs import schedules
from agents.runs.models import Approval, ApprovalStatus, Run, RunStatus
from agents.triggers.models import Trigger
from agents.web.views import employees
from agents.webhooks.models import Webhook
from tests.admin.rows import make_admin_world
from tests.hostile.agents import add_agents, add_triggers, add_webhooks
from tests.hostile.world import HostileWorld, Words, fill
from tests.world import SEARCH, UPDATE, World, streamed
from tools.caches import clear_caches
from tools.connections.changes import bump_tools_version
from tools.connections.models import AllowedHost, Source, SourceKind, SourceTool
from tools.office.files.changes import write_file
from tools.office.records.models import Draft, ListEntry, Record, RecordChange, RecordList
from tools.sources.mcp import Definition

RUN_PAGES = ("", "transcript.md", "transcript.json", "replay/", "replay.html")

pytestmark = [pytest.mark.django_db, pytest.mark.once]  # runs the same queries on both databases

PAGES = (
    "/", "/runs/", "/approvals/", "/approvals/?history=1", "/employees/", "/tools/", "/records/", "/records/import/",
    "/records/export.csv", "/drafts/", "/files/", "/schedules/", "/users/", "/audit/", "/audit/export/", "/stop/",
    "/oversight/", "/oversight/export/", "/oversight/export/?table=tools", "/simulator/", "/grants/",
    "/account/deputies/", "/agents/", "/agents/asks/", "/triggers/", "/webhooks/",
    "/notices/", "/notices/messages/?all=1", "/approvals/who/?tool=data.updateRecord",
    "/simulator/?kind=stop&tool=data.searchRecords",
    "/simulator/?kind=allow_host&host=api.example.com",
    '/simulator/?changes=[{"kind":"approval_rule","rule":{"id":0,"name":"two","needed":2}}]',
)  # fmt: skip
REST = (
    "/api/employees",
    "/api/tools",
    "/api/runs",
    "/api/approvals",
    "/api/approvals?status=approved",
    "/api/asks",
)


FIND = Definition(
    "find",
    "find",
    "Find",
    "Finds people.",
    {"type": "object", "properties": {}},
    None,
    {},
    "0" * 64,
)
OFFERED = "crm.find"
NAMED = "Of Acme"


@pytest.fixture
def hostile_world(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> HostileWorld:
    settings.GADGET_FILES_DIR = tmp_path
    monkeypatch.setattr(employees, "MAX_COUNTED", 2)
    world = make_admin_world()
    audit.append(world.acme.pk, [audit.NewEntry("user:admin", "signed_in", "user:admin", {})])
    RecordList.objects.create(organization=world.acme, name=NAMED)
    return HostileWorld(world, Words(is_hostile=False))


@pytest.mark.parametrize("has_rows", [True, False], ids=["with rows of its own", "empty"])
def test_rows_of_one_organization_do_not_change_any_page_of_another_organization(
    hostile_world: HostileWorld, has_rows: bool
) -> None:
    client = hostile_world.world.client("outsider")
    of_rows = list_row_addresses(furnish(hostile_world.world)) if has_rows else []
    by_list = f"/records/?list={RecordList.objects.get(name=NAMED).pk}"
    addresses = [*PAGES, by_list, *REST, *of_rows, *list_admin_addresses(client)]
    before = {address: read_page(client, address) for address in addresses}
    fill(hostile_world)
    create_rivals(hostile_world.world)
    create_crossing_rows(hostile_world.world)
    clear_caches()
    assert [address for address in addresses if read_page(client, address) != before[address]] == []


def test_an_id_stored_as_text_never_links_to_a_row_of_another_organization(
    hostile_world: HostileWorld,
) -> None:
    world = hostile_world.world
    card = world.card()
    decided = {
        "decided_by": world.users["approver"],
        "decided_at": card.requested_at,
        "consumed_at": card.requested_at,
    }
    Approval.objects.filter(pk=card.pk).update(status=ApprovalStatus.CONSUMED, **decided)
    globex = furnish(world)
    named = {"run_id": str(card.run_id), "call_id": str(card.tool_call_id)}
    Draft.objects.filter(organization=globex.globex).update(run_id=named["run_id"])
    RecordChange.objects.create(
        record=globex.records[0], version=2, actor="employee:Hank", before={}, after={}, **named
    )
    rows = {
        "run": card.run,
        "approval": card,
        "tool_call": card.tool_call,
        "employee": world.employee,
    }
    subjects = [f"{kind}:{row.pk}" for kind, row in {**rows, "record": world.records[0]}.items()]
    audit.append(
        globex.globex.pk,
        [audit.NewEntry("user:outsider", "looked", subject, {}) for subject in subjects],
    )
    draft = Draft.objects.get(organization=globex.globex)
    client = globex.client("outsider")
    for address in (
        "/drafts/",
        f"/drafts/{draft.pk}/",
        f"/records/{globex.records[0].pk}/",
        "/audit/",
    ):
        text = re.sub("approver[_ ]group", "", read_page(client, address))  # the audit's filters
        assert [word for word in ("Acme", "Dana", "approver", UPDATE) if word in text] == [], (
            address
        )


def test_a_delegated_run_is_shown_only_to_its_own_organization(hostile_world: HostileWorld) -> None:
    world = hostile_world.world
    parent = world.run()
    child = world.run(parent=parent, parent_call=world.call(parent), origin="delegate")
    assert world.client("viewer").get(f"/runs/{child.pk}/nested/").status_code == 200
    assert world.client("outsider").get(f"/runs/{child.pk}/nested/").status_code == 404


def furnish(world: World) -> World:
    """Give Globex one row of each kind, and return its world."""
    globex = replace(world, acme=world.globex, employee=world.others_employee)
    globex.users = {**world.users, "operator": world.users["outsider"]}
    globex.records = [Record.objects.create(organization=world.globex, name="Hooli", region="US")]
    for tool in (UPDATE, SEARCH):
        Grant.objects.create(employee=globex.employee, tool=tool)
    ToolRule.objects.create(organization=world.globex, tool=UPDATE, level="destructive")
    Credential.objects.create(organization=world.globex, service="github", fields='{"token": "t"}')
    globex.call(globex.run(RunStatus.SUCCEEDED))
    globex.card()
    decided = globex.card()
    Approval.objects.filter(pk=decided.pk).update(
        status=ApprovalStatus.DENIED,
        decided_by=world.users["outsider"],
        decided_at=decided.requested_at,
    )
    member = globex.member("outsider")
    invitations.invite(member, invitations.Offer(role="viewer"))
    schedules.create(member, globex.employee.pk, "Tidy up.", ("0 9 * * *", "UTC"))
    names = RecordList.objects.create(organization=world.globex, name="Customers")
    ListEntry.objects.create(list=names, record=globex.records[0])
    connect(world.globex, is_chosen=False)
    issue_key(member, globex.employee.pk, "Laptop", 30)
    add_triggers(globex, ["Hooli's issues"], ["Tell Hooli."])
    add_webhooks(globex, ["Hooli"], ["https://example.com/hooli"])
    Grant.objects.create(employee=globex.employee, tool=OFFERED)
    draft = Draft.objects.create(
        organization=world.globex, kind="report", title="Draft", body="Text"
    )
    draft.records.add(globex.records[0])
    write_file(world.globex.pk, ("notes.txt",), [b"Hooli"], lambda _: None)
    audit.append(
        world.globex.pk, [audit.NewEntry("user:outsider", "signed_in", "user:outsider", {})]
    )
    return globex


def create_rivals(world: World) -> None:
    """Give Acme an unfinished run, and rows with the same names as rows of Globex."""
    world.card()
    now, acme = timezone.now(), world.acme
    for tool in (UPDATE, SEARCH):
        ToolRule.objects.create(
            organization=acme, tool=tool, level="write", stopped_at=now, stopped_by="approver"
        )
        ToolFigures.objects.create(
            organization=acme, tool=tool, day=now.date(), succeeded=7, longer=7
        )
    Credential.objects.create(organization=acme, service="github", fields='{"token": "t"}')
    add_agents(world, ["Laptop"], ["refund:1"])
    add_triggers(world, ["Issues"], ["Tell me."])
    add_webhooks(world, ["Warehouse"], ["https://example.com/acme"])
    for name in ("Customers", "Leads"):
        RecordList.objects.create(organization=acme, name=name)
    connect(acme, is_chosen=True)
    Credential.objects.create(organization=acme, service="crm", fields='{"token": "t"}')
    ToolRule.objects.create(organization=acme, tool=OFFERED, level="destructive")
    Grant.objects.create(employee=world.employee, tool=OFFERED)
    AllowedHost.objects.create(organization=acme, host="crm.example", may_be_private=True)
    Organization.objects.filter(pk=acme.pk).update(stopped_at=now, stopped_by="approver")


def create_crossing_rows(world: World) -> None:
    """Create rows of Acme that refer to rows of Globex; no page of Gadget allows people to create
    such rows."""
    hank, acme = world.others_employee, world.acme
    for decision in (
        {},
        {"status": ApprovalStatus.DENIED, "decided_at": timezone.now(), "reason": "Acme says no."},
    ):
        run = Run.objects.create(
            organization=acme, employee=hank, created_by=world.users["operator"], task=NAMED
        )
        card = world.card(run)
        by = {"decided_by": world.users["approver"]} if decision else {}
        Approval.objects.filter(pk=card.pk).update(**decision, **by)
    for record in Record.objects.filter(organization=world.globex):
        Draft.objects.create(
            organization=acme, kind="report", title=NAMED, body="Text"
        ).records.add(record)
        ListEntry.objects.create(list=RecordList.objects.get(name=NAMED), record=record)
    for draft in Draft.objects.filter(organization=world.globex):
        draft.records.add(world.records[0])
    rows = [
        *Employee.objects.filter(organization=world.globex),
        *Source.objects.filter(organization=world.globex),
    ]
    rows += [*Credential.objects.filter(organization=world.globex)]
    subjects = [f"{row._meta.model_name}:{row.pk}" for row in rows]
    audit.append(
        acme.pk, [audit.NewEntry("user:approver", "changed", subject, {}) for subject in subjects]
    )


def connect(organization: Organization, *, is_chosen: bool) -> None:
    """Give the organization a server that describes one tool."""
    address = "https://crm.example/mcp"
    source = Source.objects.create(
        organization=organization,
        kind=SourceKind.MCP_HTTP,
        name="crm",
        address=address,
        authentication="bearer",
    )
    SourceTool.objects.create(
        source=source, key="find", tool=OFFERED, definition=FIND.to_json(), hash=FIND.hash, accepted_hash=FIND.hash,
        inferred_level="read", level="read", is_chosen=is_chosen,
    )  # fmt: skip
    bump_tools_version(organization.pk)


def list_row_addresses(globex: World) -> list[str]:
    """List the addresses of the pages and REST resources of all rows of Globex."""
    runs = Run.objects.filter(organization=globex.globex)
    calls = [call for run in runs for call in run.tool_calls.all()]
    cards = [card.pk for run in runs for card in run.approvals.all()]
    employee, record = globex.employee.pk, globex.records[0].pk
    return [
        *(f"/runs/{run.pk}/{page}" for run in runs for page in RUN_PAGES),
        *(f"/runs/{call.run_id}/calls/{call.pk}/" for call in calls),
        *(f"/approvals/{pk}/{page}" for pk in cards for page in ("", "card/")),
        *(f"/api/runs/{run.pk}{page}" for run in runs for page in ("", "/events")),
        *(f"/api/approvals/{pk}" for pk in cards),
        *(f"/api/tool_calls/{call.pk}" for call in calls),
        *(f"/employees/{employee}/", f"/api/employees/{employee}", f"/records/{record}/"),
        *(
            f"/triggers/{pk}/"
            for pk in Trigger.objects.filter(organization=globex.globex).values_list(
                "pk", flat=True
            )
        ),
        *(
            f"/webhooks/{pk}/"
            for pk in Webhook.objects.filter(organization=globex.globex).values_list(
                "pk", flat=True
            )
        ),
        *(f"/drafts/{draft.pk}/" for draft in Draft.objects.filter(organization=globex.globex)),
        *(
            reverse("admin:source-tools", args=(row.pk,))
            for row in Source.objects.filter(organization=globex.globex)
        ),
    ]


def list_admin_addresses(client: Client) -> list[str]:
    """List the addresses of the admin's pages for each model: the list, the form for a new row, and
    the form of the first row. For sources, add the page that deletes the row."""
    names = [f"admin:{model._meta.app_label}_{model._meta.model_name}" for model in site._registry]
    lists = [reverse(f"{name}_changelist") for name in names]
    found = (
        re.search(rf'href="({address}\d+/change/)', read_page(client, address)) for address in lists
    )
    rows = [link[1] for link in found if link]
    sources = [link for link in rows if "/source/" in link]
    # These pages list the rows to delete.
    deleting = [link.replace("/change/", "/delete/") for link in sources]
    return ["/admin/", *lists, *(reverse(f"{name}_add") for name in names), *rows, *deleting]


def read_page(client: Client, address: str) -> str:
    """Return the text at an address, without the parts that differ at each request."""
    response = client.get(address)
    assert response.status_code in {200, 302, 403}, address
    text = streamed(response) if response.streaming else response.content.decode()
    return re.sub(
        r'(name="(csrf[a-z-]+|client_request_id|starts_at)" (value|content)|nonce)="[^"]+"',
        "",
        text,
    )
