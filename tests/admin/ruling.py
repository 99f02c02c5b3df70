"""Helpers for tests of the pages for approval rules, groups and deputies."""

from __future__ import annotations

from typing import Any

from django.db.models import Model
from django.test import Client

from agents.accounts.models import AuditEntry
from agents.approval_rules.models import ApprovalRule, ApproverGroup
from tests.admin.rows import address, confirmed, consequences, faults, filled_form
from tests.world import World


def make_group(world: World, name: str, *members: str) -> ApproverGroup:
    group = ApproverGroup.objects.create(organization=world.acme, name=name)
    group.members.set([world.member(member) for member in members])
    return group


def make_rule(world: World, **columns: Any) -> ApprovalRule:
    return ApprovalRule.objects.create(organization=world.acme, **{"name": "payments", **columns})


def new_rule(world: World, **changes: Any) -> dict[str, Any]:
    """Return the data that a browser sends for a new rule."""
    return {
        "organization": world.acme.pk,
        "name": "payments",
        "is_active": "on",
        "needed": "1",
        **changes,
    }


def added(client: Client, model: type[Model], sent: dict[str, Any]) -> Any:
    """Send the form, and return the row that it adds."""
    response = client.post(address(model, "add"), sent)
    assert response.status_code == 302, faults(response)
    return model._default_manager.latest("pk")


def refusal(client: Client, model: type[Model], sent: dict[str, Any]) -> dict[str, list[str]]:
    """Send the form, which must not add a row, and return its error messages."""
    before = model._default_manager.count()
    found = faults(client.post(address(model, "add"), sent))
    assert model._default_manager.count() == before
    return found


def saved(client: Client, row: Model, **changes: Any) -> None:
    path = address(row, "change")
    response = client.post(path, filled_form(client, path, **changes))
    assert response.status_code == 302, faults(response)
    row.refresh_from_db()


def asked(client: Client, row: Model, **changes: Any) -> str:
    """Make the change, confirm its only sentence, and return that sentence."""
    path = address(row, "change")
    sent = filled_form(client, path, **changes)
    response = client.post(path, sent)
    assert list(faults(response)) == ["confirmed"]
    (sentence,) = consequences(response).values()
    before = AuditEntry.objects.count()
    assert client.post(path, confirmed(client, path, sent)).status_code == 302
    assert AuditEntry.objects.count() == before + 1
    row.refresh_from_db()
    return sentence
