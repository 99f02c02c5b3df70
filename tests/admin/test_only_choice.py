"""Admins of only one organization need not choose it: every form that adds a row has it
preselected."""

from __future__ import annotations

import re

import pytest
from django.db.models import Model

from agents.accounts.members import update_admin_access
from agents.accounts.models import ApiToken, Credential, Membership, Organization, Role
from agents.approval_rules.models import ApprovalRule, ApproverGroup
from agents.employees.models import Employee, ModelProvider, ToolRule
from tests.admin.rows import address
from tests.world import World
from tools.office.records.models import Record, RecordList

pytestmark = [pytest.mark.django_db, pytest.mark.once]

FORMS: dict[type[Model], str] = {
    ApprovalRule: "",
    ApproverGroup: "",
    Credential: "?for=github",
    Employee: "",
    ModelProvider: "",
    Record: "",
    RecordList: "",
    ToolRule: "",
}


def options(world: World, model: type[Model], name: str = "organization") -> list[tuple[str, bool]]:
    """Return the field's choices in the form for a new row, each with True if it is selected."""
    response = world.client("admin").get(f"{address(model, 'add')}{FORMS.get(model, '')}")
    assert response.status_code == 200
    select = re.search(rf'<select name="{name}".*?</select>', response.content.decode(), re.DOTALL)
    assert select is not None
    found = re.findall(r"<option[^>]*>[^<]*", select[0])
    return [(one.rpartition(">")[2].strip(), " selected" in one) for one in found]


@pytest.mark.parametrize("model", FORMS)
def test_the_only_organization_is_preselected(world: World, model: type[Model]) -> None:
    assert options(world, model) == [("Acme", True)]


def test_the_only_membership_is_preselected_for_a_new_token(world: World) -> None:
    ((name, is_selected),) = options(world, ApiToken, "membership")
    assert is_selected
    assert "admin" in name


@pytest.mark.parametrize("model", FORMS)
def test_a_person_with_several_organizations_must_choose_one(
    world: World, model: type[Model]
) -> None:
    second = Organization.objects.create(name="Second", slug="second")
    Membership.objects.create(organization=second, user=world.users["admin"], role=Role.ADMIN)
    update_admin_access(world.users["admin"])
    names = options(world, model)
    assert {name for name, _ in names} >= {"Acme", "Second"}
    assert "Globex" not in {name for name, _ in names}
    assert [name for name, is_selected in names if is_selected and name in ("Acme", "Second")] == []
