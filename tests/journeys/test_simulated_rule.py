"""In a browser, an admin simulates an approval rule from its form, and saves it afterwards."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from agents.accounts.members import update_admin_access
from agents.approval_rules.models import ApprovalRule
from tests.journeys.office import Office
from tests.journeys.test_accessibility import find_faults
from tests.journeys.visitor import Visit
from tests.workshop import asking, call

pytestmark = pytest.mark.once


@pytest.mark.every_commit
def test_an_admin_simulates_a_rule_before_saving_it(office: Office, visit: Visit) -> None:
    update_admin_access(office.workshop.admin.user)
    office.workshop.play(asking(call("probe.effect", name="a")))
    card = office.await_cards(office.submit().pk)[0]
    office.workshop.approve(card)
    page = visit("admin").page
    page.goto("/admin/approval_rules/approvalrule/add/")
    page.get_by_label("Name").fill("Two people")
    page.get_by_label("People needed").fill("2")
    with page.expect_popup() as opened:
        page.get_by_role("button", name="Simulate with recorded cards").click()
    result = opened.value
    expect(result.locator("#cards")).to_contain_text("Result for 1 recorded card")
    expect(result.locator("#cards")).to_contain_text("1 of 2: an approver")
    faults = list(find_faults(result, "a simulated rule"))
    assert not faults, "\n".join(faults)
    for width in (1440, 360):
        result.set_viewport_size({"width": width, "height": 900})
        assert result.evaluate("document.documentElement.scrollWidth") <= width
    result.locator("#cards a").click()
    expect(result).to_have_url(f"{office.url}/approvals/{card.pk}/")
    assert not ApprovalRule.objects.exists()
    page.get_by_label("Name").press("Enter")
    expect(page.locator("body")).to_contain_text("was added successfully")
    assert ApprovalRule.objects.get().name == "Two people"
