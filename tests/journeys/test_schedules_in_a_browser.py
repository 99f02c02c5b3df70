"""In a browser: a schedule is previewed, created, paused, resumed and cancelled; the pages do not
scroll sideways at any width."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.office import Office
from tests.journeys.test_accessibility import find_faults
from tests.journeys.visitor import IS_TOO_WIDE, Visit
from tests.sampling import take_sample

pytestmark = pytest.mark.once

WIDTHS = (360, 768, 1440)
LONG = "Summarize " + "everything-that-was-ever-written " * 20


def fill(page: Page, task: str = "Look around", cron: str = "0 9 * * MON-FRI") -> None:
    page.goto("/schedules/")
    page.get_by_label("Task").fill(task)
    page.get_by_label("When").fill(cron)


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
@pytest.mark.every_commit
def test_a_schedule_can_be_created_paused_resumed_and_cancelled(
    office: Office, visit: Visit, scripts: bool
) -> None:
    page = visit("operator", scripts=scripts).page
    fill(page)
    page.get_by_label("Time zone").select_option("Europe/Berlin")
    page.get_by_role("button", name="Preview next runs").click()
    shown = page.get_by_text("Next runs:").locator("xpath=..")
    expect(shown.get_by_role("listitem")).to_have_count(5)
    expect(shown.get_by_role("listitem").first).to_contain_text("09:00")
    expect(page.get_by_label("Time zone")).to_have_value("Europe/Berlin")
    page.get_by_role("button", name="Create schedule").click()
    expect(page.get_by_role("heading", name="Look around")).to_be_visible()
    expect(page.get_by_text("every weekday at 09:00 (Europe/Berlin)", exact=True)).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("paused", exact=True)).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("active", exact=True)).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("heading", name="Cancel this schedule?")).to_be_visible()
    page.get_by_role("button", name="Cancel schedule").click()
    expect(page.get_by_text("No schedules yet.")).to_be_visible()


def test_the_form_starts_with_the_readers_time_zone(office: Office, visit: Visit) -> None:
    page = visit("operator").page
    page.goto("/schedules/")
    own = page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
    expect(page.get_by_label("Time zone")).to_have_value(own)


def test_a_refused_form_keeps_its_values_and_the_page_can_be_reloaded(
    office: Office, visit: Visit
) -> None:
    page = visit("operator").page
    fill(page, cron="0 0 31 2 *")
    page.get_by_role("button", name="Create schedule").click()
    expect(page.get_by_role("alert")).to_contain_text("month 2 has no day 31")
    expect(page.get_by_label("Task")).to_have_value("Look around")
    expect(page.get_by_label("When")).to_have_value("0 0 31 2 *")
    response = page.reload()
    assert response is not None
    assert response.status == 200


def find_faults_at(page: Page, width: int, where: str) -> list[str]:
    """Find the accessibility faults at this width, and the widths at which the page scrolls
    sideways."""
    faults = list(find_faults(page, where))
    for other in (*WIDTHS, width):
        page.set_viewport_size({"width": other, "height": 900})
        faults += [f"{where} is too wide at {other}"] * page.evaluate(IS_TOO_WIDE)
    return faults


@pytest.mark.parametrize("width", take_sample(WIDTHS, len(WIDTHS), "widths of schedules"))
def test_the_pages_fit_every_width_and_pass_axe(office: Office, visit: Visit, width: int) -> None:
    page = visit("operator").page
    page.set_viewport_size({"width": width, "height": 900})
    faults: list[str] = []
    fill(page, LONG, "5,25,45 3,4,5,6,7,8 1,2,3,4,5,6,7,8 * MON,TUE,WED")
    page.get_by_role("button", name="Preview next runs").click()
    expect(page.get_by_text("Not saved yet.")).to_be_visible()
    faults += find_faults_at(page, width, "the next times")
    page.get_by_role("button", name="Create schedule").click()
    expect(page.get_by_text("Full task")).to_be_visible()
    for summary in page.locator("summary").all():
        summary.click()
    faults += find_faults_at(page, width, "a schedule")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("paused", exact=True)).to_be_visible()
    faults += find_faults_at(page, width, "a paused one")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("heading", name="Cancel this schedule?")).to_be_visible()
    faults += find_faults_at(page, width, "the confirmation")
    assert not faults, "\n".join(faults)
