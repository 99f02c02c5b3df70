"""In a browser: a read tool is found in the catalog, tried by hand, and the run page shows its
result."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from agents.runs.models import Origin, RunStatus
from tests.journeys.office import Office, load_run
from tests.journeys.test_accessibility import find_faults
from tests.journeys.visitor import IS_TOO_WIDE, Visit

pytestmark = pytest.mark.once


def open_form(page: Page, words: str) -> Locator:
    """Open the form of the only tool that this search finds."""
    page.goto(f"/tools/?q={words}")
    page.get_by_role("button", name="Try it").click()
    return page.locator("details.try[open] form")


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
@pytest.mark.every_commit
def test_a_tool_is_tried_and_its_result_is_shown(
    office: Office, visit: Visit, scripts: bool
) -> None:
    office.workshop.record(name="Acme Corp", region="EU")
    office.workshop.record(name="Initech", region="US")
    visitor = visit("operator", scripts=scripts)
    page = visitor.page
    page.goto("/tools/")
    page.get_by_role("searchbox").fill("searchRecords")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("button", name="Try it").click()
    form = page.locator("details.try[open] form")
    expect(form.get_by_label("On behalf of")).to_contain_text("Dana")
    form.locator("[name='param.region']").fill("EU")
    form.get_by_role("button", name="Try").click()
    run_id = visitor.run_id()
    run = office.await_end(run_id)
    assert (run.origin, run.status) == (Origin.MANUAL, RunStatus.SUCCEEDED)
    if not scripts:
        page.reload()
    expect(page.locator(".answer").first).to_contain_text("1 record")
    expect(page.locator(".run-facts")).to_contain_text("single call, no model")
    expect(page.locator(".follow-up")).to_have_count(0)
    answered = page.locator("[data-trial-result] table")
    expect(answered).to_contain_text("Acme Corp")
    expect(answered).not_to_contain_text("Initech")
    line = page.locator("#panel .line.call")
    line.locator("summary").first.click()
    expect(line).to_contain_text("Acme Corp")
    expect(line).not_to_contain_text("Initech")
    assert load_run(run_id).created_by == office.member("operator").user


def test_an_error_is_shown_at_its_field_and_the_values_are_kept(
    office: Office, visit: Visit
) -> None:
    page = visit("operator").page
    form = open_form(page, "calculate")
    form.locator("[name='param.operation']").select_option("divide")
    form.locator("[name='param.a']").fill("12")
    form.get_by_role("button", name="Try").click()
    form = page.locator("details.try[open] form")
    expect(
        form.locator("label", has=page.locator("[name='param.b']")).get_by_role("alert")
    ).to_have_text("This is required.")
    expect(form.locator("[name='param.a']")).to_have_value("12")
    form.locator("[name='param.b']").fill("4")
    form.get_by_role("button", name="Try").click()
    expect(page.locator(".answer").first).to_contain_text("3")


@pytest.mark.parametrize("width", [360, 1440])
def test_the_open_form_passes_axe(office: Office, visit: Visit, width: int) -> None:
    page = visit("operator").page
    page.set_viewport_size({"width": width, "height": 900})
    form = open_form(page, "searchRecords")
    expect(form).to_be_visible()
    assert not page.evaluate(IS_TOO_WIDE)
    assert not list(find_faults(page, "the form"))
    form.locator("[name='param.limit']").fill("5000")
    form.locator("[name='param.limit']").evaluate("(input) => { input.max = ''; }")
    form.get_by_role("button", name="Try").click()
    expect(page.get_by_role("alert").first).to_be_visible()
    assert not list(find_faults(page, "the form with a fault"))


def test_a_tool_can_be_tried_with_the_keyboard_alone(office: Office, visit: Visit) -> None:
    page = visit("operator").page
    page.goto("/tools/?q=utility.calculate")
    page.get_by_role("button", name="Try it").focus()
    page.keyboard.press("Enter")
    for key in ("Tab", "d", "Tab", "9", "Tab", "3", "Tab", "Enter"):
        page.keyboard.press(key)
    expect(page.locator(".answer").first).to_contain_text("3")
