"""The inbox in a browser: single keys move, open, decide and undo, never too much; and the page carries the count."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from agents.approvals.models import Approval, ApprovalStatus
from tests.journeys.office import Office
from tests.journeys.visitor import Visitor
from tests.workshop import asking, call

pytestmark = pytest.mark.once

Visit = Callable[..., Visitor]

FOCUSED = "() => document.activeElement.name ?? document.activeElement.id"


def waiting(office: Office, count: int = 3, *, deletes: bool = False) -> list[Approval]:
    """Cards of one run, each about a record of its own."""
    records = [office.workshop.record(name=f"Company {number}") for number in range(count)]
    calls = [call("data.updateRecord", record_id=str(each.pk), changes={"status": "inactive"}) for each in records]
    if deletes:
        calls = [call("data.bulkDelete", record_ids=[str(each.pk)]) for each in records]
    office.workshop.play(asking(*calls))
    return office.await_cards(office.submit().pk, count)


def in_the_inbox(visit: Visit, role: str = "approver") -> Visitor:
    visitor = visit(role)
    visitor.page.goto("/approvals/")
    expect(visitor.page.locator("[data-keys-help]")).to_be_visible()
    return visitor


def press(visitor: Visitor, keys: str) -> None:
    for key in keys.split():
        visitor.page.keyboard.press(key)


def selected(visitor: Visitor) -> Locator:
    return visitor.page.locator("[data-selected] > [data-card]")


def assert_selected(visitor: Visitor, card: Approval) -> None:
    expect(selected(visitor)).to_have_count(1)
    expect(selected(visitor)).to_have_attribute("data-card", str(card.pk))
    expect(selected(visitor)).to_be_focused()


def test_nothing_is_selected_or_focused_before_a_person_presses_a_key(office: Office, visit: Visit) -> None:
    waiting(office)
    visitor = in_the_inbox(visit)
    expect(selected(visitor)).to_have_count(0)
    assert visitor.page.evaluate("() => document.activeElement === document.body")


def test_j_and_k_move_and_enter_opens(office: Office, visit: Visit) -> None:
    first, second, third = waiting(office)
    visitor = in_the_inbox(visit)
    press(visitor, "j")
    assert_selected(visitor, first)
    press(visitor, "j j")
    assert_selected(visitor, third)
    press(visitor, "j")
    assert_selected(visitor, third)
    expect(visitor.page.locator("[data-announcer]")).to_have_text("This is the last waiting card.")
    press(visitor, "k")
    assert_selected(visitor, second)
    press(visitor, "Enter")
    visitor.page.wait_for_url(f"**/approvals/{second.pk}/")


def test_a_approves_and_u_takes_it_back(office: Office, visit: Visit) -> None:
    first, second, third = waiting(office)
    visitor = in_the_inbox(visit)
    press(visitor, "j")
    visitor.stand_still(visitor.card(first.pk))
    press(visitor, "a")
    expect(visitor.card(first.pk)).to_contain_text("Approved by acme-approver")
    expect(visitor.card(first.pk)).to_be_focused()
    press(visitor, "j")
    assert_selected(visitor, second)
    visitor.stand_still(visitor.card(first.pk))
    press(visitor, "u")
    expect(visitor.open_cards).to_have_count(3)
    assert Approval.objects.get(pk=first.pk).status == ApprovalStatus.SUPERSEDED
    assert_selected(visitor, second)
    assert Approval.objects.get(pk=third.pk).status == ApprovalStatus.PENDING


def test_d_opens_the_form_and_puts_the_cursor_into_it(office: Office, visit: Visit) -> None:
    first, second, _ = waiting(office)
    visitor = in_the_inbox(visit)
    press(visitor, "j d")
    assert visitor.page.evaluate(FOCUSED) == "reason"
    visitor.page.keyboard.type("adj auk?")
    expect(visitor.card(first.pk).locator("[name=reason]")).to_have_value("adj auk?")
    visitor.stand_still(visitor.card(first.pk))
    press(visitor, "Enter")
    expect(visitor.card(first.pk)).to_contain_text("Denied by acme-approver")
    expect(visitor.card(first.pk)).to_be_focused()
    assert Approval.objects.get(pk=first.pk).reason == "adj auk?"
    press(visitor, "j")
    assert_selected(visitor, second)


def test_escape_leaves_a_form_but_loses_no_edit(office: Office, visit: Visit) -> None:
    (card,) = waiting(office, 1)
    visitor = in_the_inbox(visit)
    shown = visitor.card(card.pk)
    press(visitor, "j d Escape")
    assert_selected(visitor, card)
    expect(shown.locator(".deny")).not_to_have_attribute("open", "")
    press(visitor, "e")
    assert visitor.page.evaluate(FOCUSED) == "param.record_id"
    visitor.page.keyboard.type("1")
    press(visitor, "Escape")
    expect(shown.locator(".edit > form")).to_be_visible()
    expect(shown.locator(".approve-button")).to_be_disabled()


def test_no_single_key_approves_what_is_destructive(office: Office, visit: Visit) -> None:
    (card,) = waiting(office, 1, deletes=True)
    visitor = in_the_inbox(visit)
    press(visitor, "j")
    visitor.stand_still(visitor.card(card.pk))
    press(visitor, "a")
    assert visitor.page.evaluate(FOCUSED) == "confirm"
    press(visitor, "a Enter")
    expect(visitor.card(card.pk).locator(".approve-button")).to_be_disabled()
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING
    assert not [line for line in visitor.sent if line.startswith("POST")]
    visitor.card(card.pk).locator("[name=confirm]").fill("Company 0")
    visitor.stand_still(visitor.card(card.pk))
    press(visitor, "Enter")
    expect(visitor.card(card.pk)).to_contain_text("Approved by acme-approver")
    office.workshop.undo(Approval.objects.get(pk=card.pk))


def test_keys_switched_off_stay_off(office: Office, visit: Visit) -> None:
    first, *_ = waiting(office)
    visitor = in_the_inbox(visit)
    press(visitor, "?")
    dialog = visitor.page.get_by_role("dialog", name="Keyboard")
    expect(dialog).to_be_visible()
    press(visitor, "j")
    expect(selected(visitor)).to_have_count(0)
    dialog.get_by_role("switch", name="Keyboard shortcuts").uncheck()
    dialog.get_by_role("button", name="Close").click()
    for _ in range(2):
        press(visitor, "j a ?")
        expect(selected(visitor)).to_have_count(0)
        expect(dialog).to_be_hidden()
        visitor.page.reload()
        expect(visitor.page.locator("[data-keys-help]")).to_be_visible()
    visitor.page.locator("[data-keys-help]").click()
    dialog.get_by_role("switch", name="Keyboard shortcuts").check()
    press(visitor, "Escape j")
    assert_selected(visitor, first)


def test_a_viewer_moves_and_decides_nothing(office: Office, visit: Visit) -> None:
    first, *_ = waiting(office)
    visitor = in_the_inbox(visit, "viewer")
    press(visitor, "j a d e")
    assert_selected(visitor, first)
    expect(visitor.page.locator("[data-announcer]")).to_have_text("Only approvers decide cards.")
    assert not [line for line in visitor.sent if line.startswith("POST")]


def test_title_and_icon_carry_the_number_of_waiting_cards(office: Office, visit: Visit) -> None:
    cards = waiting(office)
    visitor = visit("approver")
    visitor.page.goto("/employees/")
    icon = visitor.page.locator("link[rel=icon]")
    expect(visitor.page).to_have_title("(3) Employees · Gadget")
    assert "%3E3%3C%2Ftext" in (icon.get_attribute("href") or "")
    office.workshop.deny(cards[0], "No")
    expect(visitor.page).to_have_title("(2) Employees · Gadget")
    assert "%3E2%3C%2Ftext" in (icon.get_attribute("href") or "")
    for card in cards[1:]:
        office.workshop.deny(card, "No")
    expect(visitor.page).to_have_title("Employees · Gadget")
    assert (icon.get_attribute("href") or "").endswith("icon.svg")


def test_a_new_card_is_added_without_moving_the_focus(office: Office, visit: Visit) -> None:
    first, *_ = waiting(office, 2)
    visitor = in_the_inbox(visit)
    press(visitor, "j d")
    visitor.page.keyboard.type("half a rea")
    waiting(office, 1)
    expect(visitor.open_cards).to_have_count(3)
    assert visitor.page.evaluate(FOCUSED) == "reason"
    expect(visitor.card(first.pk).locator("[name=reason]")).to_have_value("half a rea")
