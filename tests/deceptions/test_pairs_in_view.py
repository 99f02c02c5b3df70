"""At both sizes of the page, the protection against a planted deception is visible before anything
is opened, or Approve is disabled."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, ViewportSize

from tests.deceptions.pairing import Pair, make_pair_office, planted
from tests.deceptions.pairs.corpus import PAIRS
from tests.deceptions.pairs.unnoticed import NOT_YET, OUT_OF_REACH, OUT_OF_VIEW
from tests.deceptions.reading_page import SIZES, ReadingPage
from tests.deceptions.signs import QUOTES, Signs, find_protection
from tests.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.once]

LOOKS = """([quotes, words]) => {
  const looksQuoted = (one) => {
    const style = getComputedStyle(one), before = getComputedStyle(one, "::before").content;
    const hasEdge = ["Top", "Left"].some((side) => parseFloat(style[`border${side}Width`]) > 0);
    return hasEdge || before.includes("\\u201c");
  };
  const hasGround = (one) => getComputedStyle(one).backgroundColor !== "rgba(0, 0, 0, 0)";
  const isTyped = (one) => getComputedStyle(one).fontFamily.includes("mono");
  const isQuoted = (one) => looksQuoted(one) || hasGround(one) || isTyped(one);
  return [...document.querySelectorAll("[data-card] *")]
    .filter((one) => !one.children.length && one.textContent.includes(words) && one.checkVisibility())
    .every((one) => isQuoted(one.closest(quotes) ?? one));
}"""
"""Return True if each visible element with these words is in a quotation with a look of its own: an
edge, quotation marks, a background or a monospaced font."""


@pytest.fixture
def office() -> World:
    return make_pair_office()


def is_listed(pair: Pair) -> bool:
    return any(pair.name in names.get(pair.kind, ()) for names in (NOT_YET, OUT_OF_REACH))


def is_protected(reader: ReadingPage, pair: Pair, found: set[str]) -> bool:
    """Return True if a mark is in view, Approve is disabled, or the words look quoted."""
    places = [f".{'.'.join(mark.split())}" for mark in found - {"off", "quoted", "confirm"}]
    sights = [reader.look(place, "") for place in [*places, ".approve-button"]]
    if any(sight.is_in_view for sight in sights[:-1]) or sights[-1].is_off:
        return True
    quotes = ", ".join(f".{name}" for name in sorted(QUOTES))
    return "quoted" in found and bool(reader.page.evaluate(LOOKS, [quotes, pair.words]))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size["width"]))
def test_protection_is_in_view_at_each_size_before_anything_is_opened(
    office: World, chromium: Browser, size: ViewportSize
) -> None:
    out_of_view, too_wide = set(), set()
    client = office.client("approver")
    with ReadingPage(chromium, client, size) as reader:
        for pair in PAIRS:
            if is_listed(pair):
                continue
            with planted(office, pair.twin) as card:
                twin = Signs(client.get(f"/approvals/{card.pk}/card/").content.decode())
            with planted(office, pair.plant) as card:
                plant = Signs(client.get(f"/approvals/{card.pk}/card/").content.decode())
                reader.show(card)
            if not is_protected(reader, pair, find_protection(pair, plant, twin)):
                out_of_view.add(str(pair))
            if reader.look(".approve-button", "").is_too_wide:
                too_wide.add(str(pair))
    print(f"{size['width']}: out of view: {sorted(out_of_view)}")
    assert out_of_view == OUT_OF_VIEW[size["width"]]
    assert not too_wide


def test_unquoted_words_are_found(office: World, chromium: Browser) -> None:
    words = [pair for pair in PAIRS if pair.name == "words that count votes"]
    quotes = ", ".join(f".{name}" for name in sorted(QUOTES))
    with ReadingPage(chromium, office.client("approver"), SIZES[0]) as reader:
        with planted(office, words[0].plant) as card:
            reader.show(card)
        assert reader.page.evaluate(LOOKS, [quotes, words[0].words])
        assert not reader.page.evaluate(LOOKS, ["[data-none]", words[0].words])
