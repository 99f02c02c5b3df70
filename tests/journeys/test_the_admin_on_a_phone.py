"""The admin on a small screen: no form is wider than the screen."""

from __future__ import annotations

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from agents.accounts.members import update_admin_access
from agents.employees.models import Employee, ModelProvider
from tests.journeys.office import Office
from tests.journeys.visitor import Visit

pytestmark = pytest.mark.once

TOO_WIDE = """() => [...document.querySelectorAll("#content-main *")]
  .filter((each) => each.getBoundingClientRect().right > innerWidth && each.checkVisibility())
  .map((each) => `${each.tagName}.${each.className} ${Math.round(each.getBoundingClientRect().right)}`)"""


def test_no_form_is_wider_than_the_screen(office: Office, visit: Visit) -> None:
    employee, provider = Employee.objects.first(), ModelProvider.objects.first()
    assert employee is not None
    assert provider is not None
    update_admin_access(office.workshop.admin.user)
    visitor = visit("admin")
    visitor.page.set_viewport_size({"width": 360, "height": 740})
    for path in (
        reverse("admin:employees_employee_change", args=[employee.pk]),
        reverse("admin:employees_employee_add"),
        reverse("admin:employees_modelprovider_change", args=[provider.pk]),
        reverse("admin:accounts_membership_change", args=[office.member("viewer").pk]),
    ):
        visitor.page.goto(path)
        expect(visitor.page.get_by_role("button", name="Save", exact=True)).to_be_visible()
        assert visitor.page.evaluate(TOO_WIDE) == [], path
        assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 360, path
