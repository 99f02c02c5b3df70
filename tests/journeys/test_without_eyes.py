"""The inbox used with screen readers, magnification or system colors, or over a slow link."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Route, expect

from agents.runs.models import Approval, ApprovalStatus
from tests.features import feature
from tests.journeys.cut_links import SocketLink
from tests.journeys.office import Office
from tests.journeys.test_the_inbox_by_keyboard import (
    assert_selected,
    in_the_inbox,
    press,
    row,
    toast,
    waiting,
)
from tests.journeys.visitor import Visit, Visitor
from tests.workshop import asking, call

pytestmark = pytest.mark.once

CARD_ADDRESS = re.compile(r"/approvals/\d+/card/")
ROW_OF_FOCUS = "() => document.activeElement.closest('[data-row]')?.dataset.row"
TEXT_AFTER = "(element) => getComputedStyle(element, '::after').content"
LOOK = """(element) => {
  const style = getComputedStyle(element);
  return (style.forcedColorAdjust === "none" ? style.backgroundColor : "") + style.borderStyle;
}"""
"""The visible style of a row in system colors, which replace its own background."""


def announcer(visitor: Visitor) -> Locator:
    return visitor.page.locator("[data-announcer]")


def evaluate_look(visitor: Visitor, card: Approval) -> Any:
    return row(visitor, card).locator("a").evaluate(LOOK)


@feature(
    "The inbox",
    "Moving through the list names each card and moves the focus",
    "static/js/inbox/inbox.js",
)
def test_j_and_k_announce_the_card_and_move_the_focus(office: Office, visit: Visit) -> None:
    first, second, _ = waiting(office)
    visitor = in_the_inbox(visit)
    expect(announcer(visitor)).to_have_text(re.compile("^Card 1 of 3: .*Company 0"))
    press(visitor, "j")
    # On a busy machine, both cards may be announced in one text.
    expect(announcer(visitor)).to_have_text(re.compile("Card 2 of 3: .*Company 1"))
    assert visitor.page.evaluate(ROW_OF_FOCUS) == str(second.pk)
    press(visitor, "k")
    expect(announcer(visitor)).to_contain_text("Card 1 of 3")
    assert visitor.page.evaluate(ROW_OF_FOCUS) == str(first.pk)


def test_the_next_card_is_announced_after_a_decision(office: Office, visit: Visit) -> None:
    first, second, _ = waiting(office)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    press(visitor, "a")
    expect(announcer(visitor)).to_have_text(re.compile("Approved: .*Card 1 of 2: .*Company 1"))
    assert_selected(visitor, second)
    office.workshop.undo(Approval.objects.get(pk=first.pk))


def test_a_new_card_is_announced_by_name(office: Office, visit: Visit) -> None:
    waiting(office, 1)
    visitor = in_the_inbox(visit)
    waiting(office, 1, deletes=True)
    expect(announcer(visitor)).to_have_text(
        re.compile("New card: .*delete.* 2 waiting.", re.IGNORECASE)
    )


@feature(
    "The inbox", "System colors show what is selected and ticked", "static/css/forced-colors.css"
)
def test_with_system_colors_selected_and_ticked_rows_look_different(
    office: Office, visit: Visit
) -> None:
    first, second, _ = waiting(office)
    visitor = in_the_inbox(visit)
    visitor.page.emulate_media(forced_colors="active")
    assert_selected(visitor, first)
    selected, plain = (evaluate_look(visitor, card) for card in (first, second))
    press(visitor, "j x k")
    expect(row(visitor, second).locator("[data-pick]")).to_be_checked()
    assert evaluate_look(visitor, second) != plain
    press(visitor, "j")
    assert evaluate_look(visitor, first) != selected


def test_the_list_stays_usable_at_a_zoom_of_400_percent(office: Office, visit: Visit) -> None:
    waiting(office)
    visitor = in_the_inbox(visit)
    visitor.page.set_viewport_size({"width": 320, "height": 256})
    box = visitor.page.locator("[data-rows]").bounding_box()
    assert box is not None
    assert box["height"] > 150, "38 % of such a window would leave 97 pixels"


def test_a_lost_and_a_restored_connection_are_announced(office: Office, visit: Visit) -> None:
    office.recorder.hold("gate")
    office.workshop.play(asking(call("probe.gate", name="gate")))
    run = office.submit()
    office.recorder.await_arrival("gate")
    visitor = visit("approver")
    link = SocketLink(visitor)
    visitor.page.goto(f"/runs/{run.pk}/")
    doing = visitor.page.locator(".bar-doing")
    expect(doing).to_be_visible()
    link.cut()
    expect(visitor.page.locator("[data-bar-lost]")).to_be_visible()
    expect(doing).to_be_hidden()
    assert "before the connection was lost" in visitor.page.locator("#run-status").evaluate(
        TEXT_AFTER
    )
    expect(announcer(visitor)).to_contain_text("Connection lost")
    link.mend()
    expect(doing).to_be_visible()
    assert visitor.page.locator("#run-status").evaluate(TEXT_AFTER) == "none"
    expect(announcer(visitor)).to_contain_text("Connected again.")
    office.recorder.release("gate")
    office.await_end(run.pk)


@feature(
    "The inbox",
    "On a slow connection, the previous card is never shown for a new selection",
    "static/js/inbox/pane.js",
)
def test_a_slow_link_never_shows_an_earlier_card_under_a_new_selection(
    office: Office, visit: Visit
) -> None:
    first, second, _ = waiting(office)
    visitor, held = visit("approver"), list[Route]()
    visitor.page.route(CARD_ADDRESS, lambda route: held.append(route), times=1)  # noqa: PLW0108 - Playwright inspects it
    visitor.page.goto("/approvals/")
    expect(visitor.page.locator("[data-keys-help]")).to_be_visible()
    press(visitor, "j")
    expect(visitor.page.get_by_text("Loading the card…")).to_be_visible()
    expect(visitor.card(first.pk)).to_be_hidden()
    press(visitor, "a")
    expect(toast(visitor)).to_contain_text("The selected card is not shown yet.")
    assert not Approval.objects.exclude(status=ApprovalStatus.PENDING).exists()
    for route in held:
        route.continue_()
    assert_selected(visitor, second)
    expect(visitor.page.get_by_text("Loading the card…")).to_be_hidden()


def test_a_card_that_failed_to_load_can_be_requested_again(office: Office, visit: Visit) -> None:
    _, second, _ = waiting(office)
    visitor = visit("approver")
    visitor.page.route(CARD_ADDRESS, lambda route: route.abort())
    visitor.page.goto("/approvals/")
    expect(visitor.page.locator("[data-keys-help]")).to_be_visible()
    press(visitor, "j")
    expect(visitor.page.locator("[data-load-problem]")).to_be_visible()
    expect(visitor.page.locator("[data-pane] > [data-card]")).to_have_count(0)
    visitor.page.unroute(CARD_ADDRESS)
    visitor.page.get_by_role("button", name="Try again").click()
    assert_selected(visitor, second)


@pytest.mark.parametrize("key", ["e", "o", "x"])
def test_a_key_pressed_in_an_empty_inbox_is_explained_on_the_screen(
    office: Office, visit: Visit, key: str
) -> None:
    visitor = in_the_inbox(visit)
    press(visitor, key)
    expect(toast(visitor)).to_be_visible()
