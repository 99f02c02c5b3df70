"""An employee's delegates: the form shows names, the grant stores ids, and every change is
audited."""

from __future__ import annotations

import pytest
from django.test import Client

from agents.accounts.models import AuditEntry
from agents.employees.models import Employee, Grant
from tests.admin.rows import address, faults, filled_form
from tests.features import feature
from tests.web.asking import DELEGATE, create_colleague
from tests.world import SEARCH, World

pytestmark = pytest.mark.django_db


@feature(
    "Questions and delegation",
    "Tasks go only to colleagues in the grant, chosen in the employee's form",
    "agents/admin/delegates.py",
)
def test_names_are_stored_as_ids_in_the_grant_and_shown_as_names_again(
    world: World, admin: Client
) -> None:
    kim, lee = create_colleague(world, "Kim"), create_colleague(world, "Lee")
    path = address(world.employee, "change")
    response = admin.post(
        path, filled_form(admin, path, allowed_tools=[SEARCH, DELEGATE], delegates="Kim\nLee\nKim")
    )
    assert response.status_code == 302, faults(response)
    assert Grant.objects.get(employee=world.employee, tool=DELEGATE).delegates == sorted(
        [kim.pk, lee.pk]
    )
    assert admin.get(path).context["adminform"].form.initial["delegates"] == ["Kim", "Lee"]
    change = (
        AuditEntry.objects.filter(action="employee_changed")
        .order_by("-seq")[0]
        .payload["fields"]["delegates"]
    )
    assert change == {"before": [], "after": ["Kim", "Lee"]}
    response = admin.post(
        path, filled_form(admin, path, allowed_tools=[SEARCH, DELEGATE], delegates="")
    )
    assert response.status_code == 302, faults(response)
    assert Grant.objects.get(employee=world.employee, tool=DELEGATE).delegates == []


@pytest.mark.parametrize("name", ["Nobody", "Dana", "Hank"])
def test_only_colleagues_can_be_delegates(world: World, admin: Client, name: str) -> None:
    """Dana is the employee itself, and Hank works for another organization."""
    path = address(world.employee, "change")
    response = admin.post(path, filled_form(admin, path, allowed_tools=[DELEGATE], delegates=name))
    assert "delegates" in faults(response)


def test_an_ambiguous_name_means_the_colleague_in_the_same_organization(
    world: World, admin: Client
) -> None:
    kim = create_colleague(world, "Kim")
    Employee.objects.create(
        organization=world.globex, name="Kim", provider=world.others_employee.provider
    )
    path = address(world.employee, "change")
    response = admin.post(path, filled_form(admin, path, allowed_tools=[DELEGATE], delegates="Kim"))
    assert response.status_code == 302, faults(response)
    assert Grant.objects.get(employee=world.employee, tool=DELEGATE).delegates == [kim.pk]


def test_delegates_require_the_delegate_tool(world: World, admin: Client) -> None:
    create_colleague(world, "Kim")
    path = address(world.employee, "change")
    response = admin.post(path, filled_form(admin, path, allowed_tools=[SEARCH], delegates="Kim"))
    assert "delegates" in faults(response)
    assert not Employee.objects.filter(grants__tool=DELEGATE).exists()
