"""No card is much taller than a phone's screen, however many values it has, and no value extends
beyond the screen's edge."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, ViewportSize

from tests.deceptions.planting import Make, call, list_targets, make_office
from tests.deceptions.reading_page import SIZES, ReadingPage
from tests.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.once]

MAX_HEIGHT = 1_050
"""The maximum height, in pixels, of a card's values and everything above them, before anything is
opened."""
MEASURE = """() => {
  const card = document.querySelector("[data-card]"), effect = card.querySelector(".effect");
  const height = () => Math.round(effect.getBoundingClientRect().bottom - card.getBoundingClientRect().top);
  const isBlock = (part) => getComputedStyle(part).display !== "inline";
  const parts = [...card.querySelectorAll(".scroll, .value, dd")].filter(isBlock);
  const isCut = () => parts.some((part) => part.scrollWidth > part.clientWidth + 1);
  const folded = height();
  card.querySelectorAll(".rest").forEach((part) => (part.open = true));
  return { folded, open: height(), isCut: isCut() };
}"""
NAMES = [f"option_{number}" for number in range(60)]


def change(count: int, before: Any, after: Any) -> Make:
    """Plant one target in which this number of fields change."""
    sides = {
        "before": dict.fromkeys(NAMES[:count], before),
        "after": dict.fromkeys(NAMES[:count], after),
    }
    return list_targets(1, sides)


HIGH: dict[str, Make] = {
    "40 short values": call(**dict.fromkeys(NAMES[:40], "yes")),
    "40 values in one object": call(body=dict.fromkeys(NAMES[:40], "yes")),
    "60 targets": list_targets(60),
    "60 changed fields": change(60, "old", "new"),
    "9 long words": call(**dict.fromkeys(NAMES[:9], "w" * 190)),
    "9 texts of many lines": call(**dict.fromkeys(NAMES[:9], "a\n" * 7)),
    "9 texts of wide letters": call(**dict.fromkeys(NAMES[:9], "漢" * 190)),
    "5 created targets with 20 fields": list_targets(
        5, {"before": {}, "after": {name: f"{name} w{'w' * 40}" for name in NAMES[:20]}}
    ),
}


@pytest.fixture
def office() -> World:
    return make_office()


@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size["width"]))
def test_the_values_of_a_tall_card_take_about_one_screen_and_none_is_cut_off(
    office: World, chromium: Browser, size: ViewportSize
) -> None:
    faults = []
    with ReadingPage(chromium, office.client("approver"), size) as reader:
        for name, make in HIGH.items():
            reader.show(make(office))
            found = reader.page.evaluate(MEASURE)
            print(size["width"], name, found)
            if found["folded"] > MAX_HEIGHT or found["isCut"]:
                faults.append(f"{name}: {found}")
    assert not faults, "\n".join(faults)


def test_an_unfolded_card_exceeds_the_height_limit(office: World, chromium: Browser) -> None:
    """The control: without the fold, forty short values would be beyond the limit."""
    with ReadingPage(chromium, office.client("approver"), SIZES[1]) as reader:
        reader.show(HIGH["40 short values"](office))
        found = reader.page.evaluate(MEASURE)
    assert found["open"] > 2 * found["folded"]
    assert found["open"] > MAX_HEIGHT


def test_folded_values_must_be_opened_before_approval(office: World, chromium: Browser) -> None:
    with ReadingPage(chromium, office.client("approver"), SIZES[1]) as reader:
        reader.show(HIGH["40 short values"](office))
        assert reader.page.locator(".approve-button").is_disabled()
        assert "the other values" in reader.page.locator("[data-unread]").inner_text()
        reader.page.locator(".rest.values > summary").click()
        reader.page.wait_for_function("!document.querySelector('.approve-button').disabled")


def test_a_long_value_among_folded_values_must_be_opened_too(
    office: World, chromium: Browser
) -> None:
    values = dict.fromkeys(NAMES[:40], "yes") | {NAMES[39]: "word " * 100}
    with ReadingPage(chromium, office.client("approver"), SIZES[1]) as reader:
        reader.show(call(**values | {name: f"{name}@acme.com" for name in NAMES[:20]})(office))
        reader.page.locator(".rest.values > summary").click()
        reader.page.wait_for_function("document.querySelector('.rest.values').dataset.read === ''")
        assert reader.page.locator(".rest.values .clamp").count() == 1
        assert reader.page.locator(".approve-button").is_disabled()
