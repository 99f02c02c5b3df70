"""A newcomer sees the whole first card without scrolling."""

from __future__ import annotations

from functools import partial

import pytest
from playwright.sync_api import Page, expect

from tests.awaiting import await_that
from tests.gadget_site.commands.demo_world import build_demo
from tests.journeys.office import Office
from tests.journeys.test_the_main_job import start_example
from tests.journeys.visitor import Visit

pytestmark = pytest.mark.once

IS_IN_VIEW = """(element) => {
  const { left, right, top, bottom } = element.getBoundingClientRect();
  const seen = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return top >= 0 && bottom <= innerHeight && element.contains(seen);
}"""


def is_in_view(page: Page, selector: str) -> bool:
    """Return True if nothing covers the element and no part of it is outside the window."""
    return bool(page.locator(selector).first.evaluate(IS_IN_VIEW))


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (360, 740)], ids=["wide", "narrow"])
def test_a_newcomer_can_decide_the_first_card_without_scrolling(
    office: Office, visit: Visit, width: int, height: int
) -> None:
    build_demo()
    worker = office.installation.process("worker1")
    visitor = visit()
    visitor.page.set_viewport_size({"width": width, "height": height})
    visitor.log_in("approver", "gadget-demo")
    worker.pause()
    start_example(visitor, "Dana")
    worker.resume()
    expect(visitor.open_cards).to_have_count(2)
    for part in (".strip", ".sentence", ".deny > summary", ".approve-button"):
        selector = f"[data-card][data-open] {part}"
        await_that(partial(is_in_view, visitor.page, selector), f"{part} is in view")
