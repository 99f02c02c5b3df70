"""Third-party pages work under our content policy: the API's description and the admin."""

from __future__ import annotations

import pytest
from playwright.sync_api import ConsoleMessage, Page, expect, sync_playwright

from tests.browser import find_browser, launch_arguments
from tests.processes import Installation

pytestmark = [pytest.mark.once, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def web(installation: Installation) -> Installation:
    installation.start_web()
    return installation


def test_the_documentation_page_shows_the_api_without_console_errors(web: Installation) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser(), args=launch_arguments()
        )
        page, complaints = listened(browser.new_page())
        page.goto(f"{web.url}/api/docs")
        expect(page.get_by_text("/api/runs").first).to_be_visible()
        page.locator("#operations-tag-Health").click()
        expect(page.locator("#operations-tag-Health")).to_be_visible()
        browser.close()
    assert not complaints


def test_the_admin_loads_without_console_errors(web: Installation) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser(), args=launch_arguments()
        )
        page, complaints = listened(browser.new_page())
        page.goto(f"{web.url}/admin/login/")
        expect(page.get_by_role("button", name="Log in")).to_be_visible()
        browser.close()
    assert not complaints


def listened(page: Page) -> tuple[Page, list[str]]:
    """Return the page, and the list of its console errors."""
    complaints: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error":
            complaints.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return page, complaints
