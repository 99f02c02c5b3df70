"""Approve stays disabled until folded parts are opened and confirmations are typed; Enter moves the
focus to the missing step."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.deceptions.planting import (
    Make,
    call,
    create,
    delete_many,
    list_targets,
    make_office,
    update,
)
from tests.deceptions.plants import LONG, PLANTS
from tests.deceptions.reading_page import ReadingPage
from tests.journeys.test_accessibility import find_faults
from tests.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.once]


@pytest.fixture
def office() -> World:
    return make_office()


@pytest.fixture
def reader(office: World, chromium: Browser) -> Iterator[ReadingPage]:
    with ReadingPage(chromium, office.client("approver"), {"width": 1440, "height": 900}) as page:
        yield page


def is_on(page: Page) -> bool:
    return page.locator(".approve-button").is_enabled()


@pytest.mark.parametrize(
    "make", [update(notes=LONG), create(name="X", notes=LONG), call(text=LONG), list_targets(9)]
)
def test_write_level_cards_require_folded_parts_to_be_opened(
    office: World, reader: ReadingPage, make: Make
) -> None:
    reader.show(make(office))
    assert not is_on(reader.page)
    reader.page.locator(".effect").locator(".clamp, .rest").first.locator("summary").click()
    expect(reader.page.locator(".approve-button")).to_be_enabled()
    expect(reader.page.locator("[data-unread]")).to_be_hidden()


def test_draft_level_cards_can_be_approved_without_opening_anything(
    office: World, reader: ReadingPage
) -> None:
    reader.show(call(level="draft", text=LONG)(office))
    assert is_on(reader.page)


def test_a_list_too_long_for_the_card_is_reviewed_on_its_own_page(
    office: World, reader: ReadingPage
) -> None:
    reader.show(list_targets(300, level="destructive", verb="delete")(office))
    reader.page.locator("[data-open-all]").click()
    reader.page.locator("[data-confirm]").fill("300")
    assert not is_on(reader.page)
    expect(reader.page.locator("[data-unread] a")).to_be_visible()


def test_enter_moves_the_focus_to_the_missing_step(office: World, reader: ReadingPage) -> None:
    page = reader.page
    reader.show(delete_many(7)(office))
    card, keyboard = page.locator("[data-card]"), page.keyboard
    card.focus()
    keyboard.press("Enter")
    expect(page.locator(".rest > summary")).to_be_focused()
    keyboard.press("Enter")
    expect(page.locator(".rest[data-read]")).to_have_count(1)
    card.focus()
    keyboard.press("Enter")
    confirm = page.locator("[data-confirm]")
    expect(confirm).to_be_focused()
    confirm.fill("6")
    keyboard.press("Enter")
    expect(confirm).to_be_focused()
    expect(page.locator("[data-announcer]")).to_contain_text("Type “7” to confirm")
    confirm.fill("7")
    card.focus()
    keyboard.press("Enter")
    expect(page.locator(".approve-button")).to_be_focused()


def test_cards_with_warnings_are_accessible(office: World, reader: ReadingPage) -> None:
    faults: list[str] = []
    for plant in {plant.kind: plant for plant in PLANTS}.values():
        reader.show(plant.make(office))
        faults += find_faults(reader.page, plant.kind)
    assert not faults, "\n".join(faults)
