"""Letters typed into a control never decide a card; keys decide only if no control is open or
focused."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from agents.runs.models import Approval, ApprovalStatus
from tests.features import feature
from tests.journeys.office import Office
from tests.journeys.test_the_inbox_by_keyboard import (
    assert_selected,
    in_the_inbox,
    press,
    toast,
    waiting,
)
from tests.journeys.visitor import Visit, Visitor

pytestmark = pytest.mark.once

SENTENCE = "all deny xXA 1 2 u e s t"
FIELDS = "body :is(input:not([type=hidden]), textarea, select, details:has(form, input, textarea, select) > summary)"
PAGES = (
    "/approvals/?sort=asked",
    "/approvals/{card}/",
    "/runs/{run}/",
    "/",
    "/records/",
    "/tools/",
    "/schedules/",
    "/stop/",
)
REVEAL = """(field) => {
  const inner = field.matches("summary") ? field.parentElement.parentElement : field;
  for (let outer = inner.closest("details"); outer; outer = outer.parentElement.closest("details")) outer.open = true;
  const dialog = field.closest("dialog");
  if (dialog && !dialog.open) dialog.showModal();
  const menu = field.closest("[popover]");
  if (menu && !menu.matches(":popover-open")) menu.showPopover();
  field.focus();
  return field === document.activeElement;
}"""


# Presses A before the page learns that the form was closed.
CLOSE_AND_PRESS = """(summary) => {
  summary.focus();
  summary.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, detail: 1 }));
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true, cancelable: true }));
}"""


# Returns true if the key decided: a decision locks its card immediately.
COMPOSE = """() => {
  const key = new KeyboardEvent("keydown", { key: "a", isComposing: true, bubbles: true, cancelable: true });
  document.body.dispatchEvent(key);
  return document.querySelector("[data-pane] > [data-card]").hasAttribute("data-locked");
}"""


def count_decided() -> int:
    return Approval.objects.exclude(status=ApprovalStatus.PENDING).count()


def summary_of(visitor: Visitor, selector: str) -> Locator:
    return visitor.page.locator(f"{selector} > summary")


def switch_keys_on(visitor: Visitor) -> None:
    visitor.page.locator("[data-keys-help]").first.click()
    visitor.page.locator("[data-keys-switch]").check()
    press(visitor, "Escape")


@feature(
    "The inbox",
    "Typing never decides a card, whatever control has the focus",
    "static/js/frame/key_guard.js",
)
def test_a_sentence_typed_into_each_control_of_each_page_does_not_decide_a_card(
    office: Office, visit: Visit
) -> None:
    first, *_ = waiting(office, 2)
    waiting(office, 1, deletes=True)
    visitor, typed = in_the_inbox(visit), 0
    for page in PAGES:
        address = f"{office.url}{page.format(card=first.pk, run=first.run_id)}"
        visitor.page.goto(address)
        for number in range(visitor.page.locator(FIELDS).count()):
            if visitor.page.url != address:  # a filter was chosen
                visitor.page.goto(address)
            field = visitor.page.locator(FIELDS).nth(number)
            if field.evaluate(REVEAL):
                typed += 1
                visitor.page.keyboard.type(SENTENCE)
            assert count_decided() == 0, f"{address}: field {number}"
    assert typed > 30
    visitor.page.goto("/approvals/")
    switch_keys_on(visitor)  # the switch was one of the controls
    assert_selected(visitor, first)
    press(visitor, "a")
    expect(toast(visitor)).to_contain_text("Approved")
    office.workshop.undo(Approval.objects.get(pk=first.pk))


@pytest.mark.parametrize("form", [".save-view", ".deny"])
def test_keys_do_not_decide_while_a_closed_form_has_the_focus(
    office: Office, visit: Visit, form: str
) -> None:
    first, *_ = waiting(office, 2)
    visitor = in_the_inbox(visit)
    visitor.page.goto("/approvals/?sort=asked")
    assert_selected(visitor, first)
    summary_of(visitor, form).focus()
    press(visitor, "a")
    expect(toast(visitor)).to_contain_text("A form has the focus. Leave it with Esc.")
    assert count_decided() == 0
    press(visitor, "Escape a")
    expect(toast(visitor).last).to_contain_text("Approved")
    office.workshop.undo(Approval.objects.get(pk=first.pk))


def test_closing_a_form_with_the_pointer_enables_the_keys_again(
    office: Office, visit: Visit
) -> None:
    first, second = waiting(office, 2)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    summary_of(visitor, ".deny").click()
    expect(visitor.page.locator(".deny [name=reason]")).to_be_focused()
    summary_of(visitor, ".deny").evaluate(CLOSE_AND_PRESS)
    assert_selected(visitor, second)
    office.workshop.undo(Approval.objects.get(pk=first.pk))


def test_an_opened_form_receives_the_following_letters(office: Office, visit: Visit) -> None:
    first, *_ = waiting(office, 2)
    visitor = in_the_inbox(visit)
    visitor.page.goto("/approvals/?sort=asked")
    assert_selected(visitor, first)
    summary_of(visitor, ".save-view").click()
    visitor.page.keyboard.type("all mine")
    expect(visitor.page.locator(".save-view [name=name]")).to_have_value("all mine")
    assert count_decided() == 0


@pytest.mark.parametrize("form", [".save-view", ".deny", ".edit"])
def test_keys_do_not_decide_a_card_while_a_form_is_open_and_escape_closes_the_form(
    office: Office, visit: Visit, form: str
) -> None:
    first, *_ = waiting(office, 2)
    visitor = in_the_inbox(visit)
    visitor.page.goto("/approvals/?sort=asked")
    assert_selected(visitor, first)
    summary_of(visitor, form).click()
    expect(visitor.page.locator(f"{form} :focus")).to_have_count(1)
    visitor.page.evaluate("() => document.activeElement.blur()")
    press(visitor, "a 1 A d")
    expect(toast(visitor)).to_contain_text("A form is open. Send it, or close it with Esc.")
    assert count_decided() == 0
    press(visitor, "Escape")
    expect(visitor.page.locator(f"{form}[open]")).to_have_count(0)
    press(visitor, "a")
    expect(toast(visitor).last).to_contain_text("Approved")
    office.workshop.undo(Approval.objects.get(pk=first.pk))


def test_a_key_decides_while_details_without_a_form_are_open(office: Office, visit: Visit) -> None:
    first, second = waiting(office, 2)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    summary_of(visitor, ".exact-request").click()
    press(visitor, "a")
    assert_selected(visitor, second)
    office.workshop.undo(Approval.objects.get(pk=first.pk))


def test_keys_do_not_decide_while_a_menu_or_a_dialog_is_open(office: Office, visit: Visit) -> None:
    first, second = waiting(office, 2)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    assert not visitor.page.evaluate(COMPOSE), "a letter that is being composed is no key"
    visitor.page.locator(".account-button").click()
    press(visitor, "a d 1")
    press(visitor, "Escape")
    for opening in ("?", "s", "Control+k"):
        press(visitor, opening)
        press(visitor, "a A")
        press(visitor, "Escape")
    assert count_decided() == 0
    press(visitor, "a")
    assert_selected(visitor, second)
    office.workshop.undo(Approval.objects.get(pk=first.pk))


def test_a_reason_can_begin_with_a_digit(office: Office, visit: Visit) -> None:
    first, second = waiting(office, 2)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    press(visitor, "d")
    visitor.page.keyboard.type("2 of these are wrong", delay=40)
    visitor.page.wait_for_timeout(1_000)  # longer than the wait after a lone digit
    assert count_decided() == 0
    press(visitor, "Enter")
    assert_selected(visitor, second)
    assert Approval.objects.get(pk=first.pk).reason == "2 of these are wrong"
