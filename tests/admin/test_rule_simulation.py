"""The form for an approval rule opens the simulator without saving anything."""

from __future__ import annotations

from html import unescape
from typing import Any

import pytest
from django.test import Client

from agents.accounts.models import AuditEntry, Membership, Role
from agents.approval_rules.models import ApprovalRule
from tests.admin.rows import address, faults, filled_form
from tests.admin.ruling import make_group, make_rule, new_rule
from tests.features import feature
from tests.world import UPDATE, World

pytestmark = [pytest.mark.django_db, pytest.mark.once]

SIMULATE = {"_simulate": "1"}
RESULT = "Changes in this policy draft"


def read(response: Any) -> str:
    assert response.status_code == 200
    return unescape(response.content.decode())


def test_a_new_rule_is_simulated_from_its_form_without_being_saved(
    world: World, admin: Client
) -> None:
    finance = make_group(world, "Finance", "approver", "admin")
    assert 'name="_simulate"' in read(admin.get(address(ApprovalRule, "add")))
    condition = {
        "condition_param": "record_id",
        "condition_comparison": "prefix",
        "condition_value": "7",
    }
    sent = new_rule(world, tool=UPDATE, needed="2", group=finance.pk, **condition, **SIMULATE)
    page = read(admin.post(address(ApprovalRule, "add"), sent))
    assert RESULT in page
    assert (
        f"Approval rule “payments”: needs 2 people of Finance; for {UPDATE}, if record_id is a text"
        in page
    )
    assert not ApprovalRule.objects.exists()
    assert not AuditEntry.objects.filter(action__startswith="approval_rule").exists()
    del sent["_simulate"]
    assert admin.post(address(ApprovalRule, "add"), sent).status_code == 302
    assert ApprovalRule.objects.exists()


@feature(
    "The gate",
    "A simulated approval rule is not saved, and its consequences need no confirmation",
    "agents/admin/approval_rule_simulation.py",
)
def test_a_changed_rule_is_simulated_without_confirming_its_consequences(
    world: World, admin: Client
) -> None:
    rule = make_rule(world, needed=2)
    path = address(rule, "change")
    page = read(admin.post(path, {**filled_form(admin, path, needed="1"), **SIMULATE}))
    assert "Approval rule “payments”: needs 1 approver; for every tool" in page
    assert f'"id": {rule.pk}' in page
    rule.refresh_from_db()
    assert rule.needed == 2


def test_a_switched_off_rule_is_simulated_as_removed(world: World, admin: Client) -> None:
    rule = make_rule(world)
    path = address(rule, "change")
    page = read(admin.post(path, {**filled_form(admin, path, is_active=None), **SIMULATE}))
    assert "Remove the approval rule “payments”" in page
    new = new_rule(world, name="another", is_active="", **SIMULATE)
    assert "A new rule that is not active changes nothing" in read(
        admin.post(address(ApprovalRule, "add"), new)
    )
    rule.refresh_from_db()
    assert rule.is_active


def test_the_delete_page_of_a_rule_links_to_the_simulator(world: World, admin: Client) -> None:
    rule = make_rule(world)
    page = read(admin.get(address(rule, "delete")))
    link = page.split('href="/simulator/?', 1)[1].split('"', 1)[0]
    assert "Remove the approval rule “payments”" in read(admin.get(f"/simulator/?{link}"))
    ApprovalRule.objects.update(is_active=False)
    assert "/simulator/?" not in read(admin.get(address(rule, "delete")))


def test_an_invalid_form_shows_its_errors_instead_of_a_simulation(
    world: World, admin: Client
) -> None:
    response = admin.post(address(ApprovalRule, "add"), new_rule(world, needed="9", **SIMULATE))
    assert "needed" in faults(response)
    assert RESULT not in read(response)


def test_a_rule_is_not_simulated_if_another_organization_is_active_in_the_session(
    world: World,
) -> None:
    member = Membership.objects.create(
        organization=world.globex, user=world.users["admin"], role=Role.ADMIN
    )
    client = world.client("admin")
    sent = {**new_rule(world), **SIMULATE}
    assert RESULT in read(client.post(address(ApprovalRule, "add"), sent))
    page = read(
        client.post(address(ApprovalRule, "add"), {**sent, "organization": member.organization_id})
    )
    assert "open Gadget as an admin of Globex" in page
    assert RESULT not in page
    assert not ApprovalRule.objects.exists()
