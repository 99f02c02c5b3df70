"""In a browser: the theme, the drawer, the search palette and the keys of every page."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from tests.awaiting import await_that
from tests.features import feature
from tests.journeys.office import Office
from tests.journeys.test_accessibility import find_faults
from tests.journeys.visitor import Visit
from tools.office.records.models import Record

pytestmark = pytest.mark.once

GROUND = "() => getComputedStyle(document.documentElement).getPropertyValue('color-scheme')"
FOCUS_IN_DRAWER = """() => document.activeElement === document.body
  || document.getElementById("drawer").contains(document.activeElement)"""


@feature("Pages", "Every open tab follows a change of the theme", "static/js/frame/theme.js")
def test_the_theme_can_be_switched_and_is_remembered(office: Office, visit: Visit) -> None:
    page = visit("viewer").page
    page.goto("/runs/")
    page.get_by_role("button", name="Account:").click()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    assert page.evaluate(GROUND) == "dark"
    other = page.context.new_page()
    other.goto("/records/")
    expect(other.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="System").click()
    expect(other.locator("html")).not_to_have_attribute("data-theme", "dark")
    assert page.evaluate(GROUND) == "light"


@feature("Pages", "The account menu works without scripts", "templates/frame/account.html")
def test_the_account_menu_changes_the_theme_and_logs_out_without_scripts(
    office: Office, visit: Visit
) -> None:
    page = visit("viewer", scripts=False).page
    page.goto("/runs/")
    expect(page.get_by_role("button", name="Log out")).to_be_hidden()
    page.get_by_role("button", name="Account:").click()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page).to_have_url(f"{office.url}/runs/")
    page.get_by_role("button", name="Account:").click()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Username")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


@feature(
    "Pages",
    "Below 1,024 px the navigation is a drawer, which keeps the focus while it is open",
    "static/js/frame/drawer.js",
)
def test_the_focus_stays_inside_the_open_drawer(office: Office, visit: Visit) -> None:
    page = visit("viewer").page
    page.set_viewport_size({"width": 768, "height": 900})
    page.goto("/runs/")
    menu = page.get_by_role("button", name="Menu")
    menu.click()
    expect(page.get_by_role("navigation", name="Main")).to_be_visible()
    for key in ["Tab"] * 24 + ["Shift+Tab"] * 4:
        page.keyboard.press(key)
        assert page.evaluate(FOCUS_IN_DRAWER)
    page.keyboard.press("Escape")
    expect(page.get_by_role("navigation", name="Main")).to_be_hidden()
    expect(menu).to_be_focused()


@feature(
    "Pages", "Ctrl+K finds any page, record, run, employee or action", "static/js/frame/palette.js"
)
@pytest.mark.every_commit
def test_the_palette_finds_and_opens_pages_by_keyboard(office: Office, visit: Visit) -> None:
    record = Record.objects.create(organization=office.workshop.organization, name="Zebra Works")
    Record.objects.create(organization=office.workshop.organization, name="Zebra Farm")
    page = visit("viewer").page
    page.goto("/runs/")
    press(page, "Control+k")
    field = page.get_by_role("combobox", name="Search pages")
    expect(field).to_be_focused()
    expect(page.get_by_role("option", name="Approvals")).to_be_visible()
    page.keyboard.type("zebra")
    expect(page.get_by_role("dialog").get_by_role("option")).to_have_count(2)
    farm, works = (
        page.get_by_role("option", name="Zebra Farm"),
        page.get_by_role("option", name="Zebra Works"),
    )
    expect(farm).to_have_attribute("aria-selected", "true")
    press(page, "ArrowDown")
    expect(works).to_have_attribute("aria-selected", "true")
    expect(farm).to_have_attribute("aria-selected", "false")
    assert field.get_attribute("aria-activedescendant") == works.get_attribute("id")
    assert list(find_faults(page, "the palette")) == []
    press(page, "Enter")
    expect(page).to_have_url(f"{office.url}/records/{record.pk}/")
    expect(page.locator("html")).to_have_class("scripted")
    press(page, "Meta+k")
    expect(field).to_be_focused()
    press(page, "Escape")
    expect(field).to_be_hidden()


def test_enter_opens_the_result_for_the_last_typed_text(office: Office, visit: Visit) -> None:
    """If Enter is pressed right after the last letter, it waits for the results for the whole
    text."""
    page = visit("viewer").page
    page.goto("/runs/")
    press(page, "Control+k")
    expect(page.get_by_role("option", name="Approvals")).to_be_visible()
    page.keyboard.type("draf")
    press(page, "Enter")
    expect(page).to_have_url(f"{office.url}/drafts/")


def test_a_late_response_keeps_the_chosen_result(office: Office, visit: Visit) -> None:
    """The results for the last letter come after an arrow key."""
    for name in ("Zebra Farm", "Zebra Works"):
        Record.objects.create(organization=office.workshop.organization, name=name)
    page = visit("viewer").page
    page.goto("/runs/")
    press(page, "Control+k")
    page.keyboard.type("zebr")
    options = page.get_by_role("dialog").get_by_role("option")
    expect(options).to_have_count(2)
    waiting: list[Route] = []

    def hold(route: Route) -> None:
        waiting.append(route)

    page.route("**/*zebra*", hold)
    page.keyboard.type("a")
    press(page, "ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    await_that(
        lambda: page.evaluate("1") and waiting, "the search for the last letter is on its way"
    )
    options.nth(0).evaluate("(option) => option.toggleAttribute('data-earlier')")
    waiting[0].continue_()
    expect(page.locator("[data-earlier]")).to_have_count(0)
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    expect(options.nth(0)).to_have_attribute("aria-selected", "false")


def test_g_and_a_letter_open_a_page(office: Office, visit: Visit) -> None:
    page = visit("approver").page
    page.goto("/runs/")
    for key, path in (("e", "/employees/"), ("a", "/approvals/"), ("h", "/")):
        expect(page.locator("html")).to_have_class("scripted")
        press(page, "g", key)
        expect(page).to_have_url(f"{office.url}{path}")


@feature(
    "Pages",
    "`g` and a letter go to a page; `?` lists the keys and can turn them off",
    "static/js/frame/keys.js",
)
def test_the_help_lists_the_keys_and_can_turn_them_off(office: Office, visit: Visit) -> None:
    page = visit("approver").page
    page.goto("/employees/")
    press(page, "?")
    dialog = page.get_by_role("dialog", name="Keyboard")
    expect(dialog).to_contain_text("Every page")
    expect(dialog).not_to_contain_text("This page")
    assert list(find_faults(page, "the help")) == []
    dialog.get_by_role("switch", name="Keyboard shortcuts").uncheck()
    dialog.get_by_role("button", name="Close").click()
    press(page, "g", "r", "?")
    expect(dialog).to_be_hidden()
    expect(page).to_have_url(f"{office.url}/employees/")
    press(page, "Control+k")
    expect(page.get_by_role("combobox", name="Search pages")).to_be_focused()


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def test_times_are_kept_up_to_date_with_the_exact_time_on_hover(
    office: Office, visit: Visit
) -> None:
    record = Record.objects.create(organization=office.workshop.organization, name="Zebra Works")
    page = visit("viewer").page
    for age, words in ((timedelta(minutes=5), "5 min ago"), (timedelta(hours=3), "3 h ago")):
        page.clock.set_fixed_time(timezone.now() + age)
        page.goto(f"/records/{record.pk}/")
        expect(page.locator("time[data-ago]").first).to_have_text(words)
    assert str(timezone.now().year) in str(
        page.locator("time[data-ago]").first.get_attribute("title")
    )
    page.clock.set_fixed_time(timezone.now() + timedelta(hours=30))
    expect(page.locator("time[data-ago]").first).to_contain_text(
        str(timezone.now().year), timeout=30_000
    )
