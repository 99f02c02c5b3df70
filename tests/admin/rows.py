"""Data for tests of the admin: a row of every model in Acme, people with access to the admin, and
the forms that a browser would send."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Model
from django.test import Client
from django.utils import timezone

from agents.accounts import audit
from agents.accounts.members import update_admin_access
from agents.accounts.membership import issue_token
from agents.accounts.models import AuditEntry, Credential
from agents.admin.tool_limits import LimitsField
from agents.approval_rules.models import ApprovalRule, ApproverGroup, Deputy
from agents.employees.models import ToolRule
from agents.runs.models import Event, EventType, Message, Pass, Run
from tests.world import World, make_world
from tools.connections.models import AllowedHost, Source
from tools.office.records.models import Draft, ListEntry, RecordList


def make_admin_world() -> World:
    """Create the usual world, where the admins of both organizations can log in to the admin."""
    world = make_world()
    for user in world.users.values():
        update_admin_access(user)
        user.refresh_from_db()
    return world


def one_of_each(world: World) -> list[Model]:
    """Create a row of every model in Acme."""
    card = world.card()
    run = Run.objects.get(pk=card.run_id)
    listed = RecordList.objects.create(organization=world.acme, name="Spring")
    with transaction.atomic():
        audit.append(
            world.acme.pk, [audit.NewEntry("user:admin", "employee_changed", "employee:1")]
        )
    token, _ = issue_token(world.member("operator"), "Acme's key")
    return [
        world.acme,
        world.member("viewer"),
        token,
        world.employee.provider,
        world.employee,
        run,
        Message.objects.get(run=run),
        Pass.objects.create(run=run, number=1, response={}, messages_upto=1),
        card.tool_call,
        card,
        Event.objects.create(run=run, seq=1, type=EventType.RUN_STARTED, payload={}),
        AuditEntry.objects.get(organization=world.acme),
        world.records[0],
        listed,
        ListEntry.objects.create(list=listed, record=world.records[0]),
        Draft.objects.create(
            organization=world.acme, kind="summary", title="Acme's draft", body="Text"
        ),
        ToolRule.objects.create(
            organization=world.acme, tool="data.getStats", level="write", stopped_by="of-acme"
        ),
        Credential.objects.create(
            organization=world.acme, service="acme", fields='{"token": "of-acme"}'
        ),
        Source.objects.create(
            organization=world.acme,
            kind="openapi",
            name="of_acme",
            address="https://of-acme.example",
        ),
        AllowedHost.objects.create(organization=world.acme, host="of-acme.example"),
        ApproverGroup.objects.create(organization=world.acme, name="Of Acme"),
        ApprovalRule.objects.create(organization=world.acme, name="of-acme"),
        make_deputy(world),
    ]


def make_deputy(world: World) -> Deputy:
    """Make the admin the approver's deputy for an hour."""
    names = {"member": world.member("approver"), "deputy": world.member("admin")}
    return Deputy.objects.create(**names, ends_at=timezone.now() + timedelta(hours=1))


def address(row: Model | type[Model], page: str) -> str:
    """Return the address of an admin page: `change`, `delete` or `history` of a row, or `list` or
    `add` of a model."""
    base = f"/admin/{row._meta.app_label}/{row._meta.model_name}/"
    if page == "list":
        return base
    if page == "add":
        return f"{base}add/"
    assert isinstance(row, Model)
    return f"{base}{row.pk}/{page}/"


def filled_form(client: Client, path: str, **changes: Any) -> dict[str, Any]:
    """Return the data that a browser would send from the form at this address, with these changes;
    None omits a field."""
    response = client.get(path)
    assert response.status_code == 200, (path, response.status_code)
    form = response.context["adminform"].form
    values: dict[str, Any] = {}
    for bound in form:
        value = bound.value()
        if isinstance(bound.field, LimitsField):
            values.update(fill_in(value))
            continue
        if value is None or value is False:
            continue
        values[bound.html_name] = "on" if value is True else bound.field.prepare_value(value)
    values.update(changes)
    return {name: value for name, value in values.items() if value is not None}


def fill_in(rows: list[dict[str, str]]) -> dict[str, str]:
    """Return the data that a browser would send for these rows of the limits form."""
    return {
        f"limits-{number}-{name}": text
        for number, row in enumerate(rows)
        for name, text in row.items()
    }


def faults(response: Any) -> dict[str, list[str]]:
    """Return the error messages of a refused form, by field."""
    assert response.status_code == 200, response.status_code
    found: dict[str, list[str]] = {
        name: list(told) for name, told in response.context["adminform"].form.errors.items()
    }
    return found


def confirmed(client: Client, path: str, sent: dict[str, Any]) -> dict[str, Any]:
    """Return the data that a browser would send once every consequence in the form at this address
    is ticked."""
    response = client.post(path, sent)
    assert list(faults(response)) == ["confirmed"]
    return {**sent, "confirmed": list(consequences(response))}


def consequences(response: Any) -> dict[str, str]:
    """Return the sentences to confirm in the form, by the value that confirms each."""
    return dict(response.context["adminform"].form.fields["confirmed"].choices)
