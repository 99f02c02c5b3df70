"""The inbox in a browser: single keys select, open, decide and undo, and each press acts only once;
the page shows the number of cards."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from agents.runs.models import Approval, ApprovalStatus
from tests.awaiting import await_that
from tests.features import feature
from tests.journeys.office import Office
from tests.journeys.visitor import Visit, Visitor
from tests.workshop import asking, call

pytestmark = pytest.mark.once

FOCUSED = "() => document.activeElement.name ?? document.activeElement.id"
SETTLED = """() => {
  const card = document.querySelector("[data-pane] > [data-card]");
  if (!card) return false;
  card.firstSeen ??= performance.now();
  return performance.now() - card.firstSeen > 300;
}"""
# Returns true after a second without a response: then all cards are prefetched.
QUIET = """() => {
  const count = performance.getEntriesByType("resource").length;
  if (window.counted !== count) [window.counted, window.countedAt] = [count, performance.now()];
  return performance.now() - window.countedAt > 1000;
}"""
RECEIVED = "() => performance.getEntriesByType('resource').reduce((sum, each) => sum + each.transferSize, 0)"


def get_status(card: Approval) -> str:
    return Approval.objects.get(pk=card.pk).status


def waiting(office: Office, count: int = 3, *, deletes: bool = False) -> list[Approval]:
    """Create cards of one run, each about its own record."""
    records = [office.workshop.record(name=f"Company {number}") for number in range(count)]
    calls = [
        call("data.updateRecord", record_id=str(each.pk), changes={"status": "inactive"})
        for each in records
    ]
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


def row(visitor: Visitor, card: Approval) -> Locator:
    return visitor.page.locator(f"#row-{card.pk}")


def rows(visitor: Visitor) -> Locator:
    return visitor.page.locator("[data-row]")


def toast(visitor: Visitor) -> Locator:
    return visitor.page.locator(".toast")


def assert_selected(visitor: Visitor, card: Approval) -> None:
    """Check that the row is selected, and that only the card of this row is shown next to the
    list."""
    expect(row(visitor, card).locator("a")).to_have_attribute("aria-current", "true")
    expect(visitor.page.locator("[data-row] > a[aria-current]")).to_have_count(1)
    expect(visitor.page.locator("[data-pane] > [data-card]")).to_have_count(1)
    expect(visitor.card(card.pk)).to_be_visible()
    await_that(lambda: visitor.page.evaluate(SETTLED), "a person can have seen the card")


def test_the_first_card_is_shown_without_a_focused_element(office: Office, visit: Visit) -> None:
    first, *_ = waiting(office)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    assert visitor.page.evaluate("() => document.activeElement === document.body")


def test_j_and_k_move_the_selection_and_o_opens_the_card(office: Office, visit: Visit) -> None:
    first, second, third = waiting(office)
    visitor = in_the_inbox(visit)
    press(visitor, "j")
    assert_selected(visitor, second)
    press(visitor, "j")
    assert_selected(visitor, third)
    press(visitor, "j")
    assert_selected(visitor, third)
    expect(visitor.page.locator("[data-announcer]")).to_have_text("This is the last waiting card.")
    press(visitor, "k k")
    assert_selected(visitor, first)
    press(visitor, "o")
    visitor.page.wait_for_url(f"**/approvals/{first.pk}/")


@feature(
    "The inbox",
    "A decision leads to the next card, and a note offers to undo it",
    "static/js/inbox/inbox.js",
)
@pytest.mark.every_commit
def test_the_a_key_approves_and_selects_the_next_card_and_the_u_key_undoes(
    office: Office, visit: Visit
) -> None:
    first, second, third = waiting(office)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    press(visitor, "a")
    expect(toast(visitor)).to_contain_text("Approved: ")
    assert_selected(visitor, second)
    expect(rows(visitor)).to_have_count(2)
    press(visitor, "u")
    expect(rows(visitor)).to_have_count(3)
    assert Approval.objects.get(pk=first.pk).status == ApprovalStatus.SUPERSEDED
    (asked_again,) = Approval.objects.filter(
        tool_call=first.tool_call_id, status=ApprovalStatus.PENDING
    )
    assert_selected(visitor, asked_again)
    assert Approval.objects.get(pk=third.pk).status == ApprovalStatus.PENDING


def test_the_message_about_an_approval_has_an_undo_button(office: Office, visit: Visit) -> None:
    first, second = waiting(office, 2)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    press(visitor, "a")
    assert_selected(visitor, second)
    toast(visitor).get_by_role("button", name="Undo").click()
    expect(rows(visitor)).to_have_count(2)
    assert Approval.objects.get(pk=first.pk).status == ApprovalStatus.SUPERSEDED


def test_pressing_the_a_key_twice_quickly_decides_only_one_card(
    office: Office, visit: Visit
) -> None:
    """The second press comes before anybody can have read the next card."""
    first, second, _ = waiting(office)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    press(visitor, "a")
    expect(visitor.card(second.pk)).to_be_visible()
    press(visitor, "a")
    assert Approval.objects.get(pk=second.pk).status == ApprovalStatus.PENDING
    office.workshop.undo(Approval.objects.get(pk=first.pk))


def test_the_d_key_and_a_digit_deny_with_a_reason(office: Office, visit: Visit) -> None:
    first, second, _ = waiting(office)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    press(visitor, "d 1")
    assert_selected(visitor, second)
    denied = Approval.objects.get(pk=first.pk)
    assert (denied.status, denied.reason) == (ApprovalStatus.DENIED, "Wrong target")


def test_the_d_key_accepts_a_reason_in_free_text(office: Office, visit: Visit) -> None:
    first, second, _ = waiting(office)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    press(visitor, "d")
    assert visitor.page.evaluate(FOCUSED) == "reason"
    visitor.page.keyboard.type("adj auk? 12")
    press(visitor, "Enter")
    assert_selected(visitor, second)
    assert Approval.objects.get(pk=first.pk).reason == "adj auk? 12"


def test_keys_do_not_approve_a_card_while_a_reason_is_typed(office: Office, visit: Visit) -> None:
    first, second, _ = waiting(office)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    visitor.card(first.pk).get_by_text("Deny…").click()
    await_that(lambda: visitor.page.evaluate(FOCUSED) == "reason", "the field has the focus")
    visitor.page.keyboard.type("a fake")
    expect(visitor.card(first.pk).get_by_label("Reason")).to_have_value("a fake")
    visitor.page.evaluate("() => document.activeElement.blur()")
    press(visitor, "a")
    visitor.card(first.pk).get_by_label("Reason").focus()
    press(visitor, "Escape a")
    assert_selected(visitor, second)
    await_that(
        lambda: (
            list(Approval.objects.exclude(decided_by=None).values_list("pk", "reason"))
            == [(first.pk, "")]
        ),
        "only the key after Escape approved",
    )


def test_after_the_last_decision_the_inbox_is_empty_and_shows_figures(
    office: Office, visit: Visit
) -> None:
    waiting(office, 1)
    visitor = in_the_inbox(visit)
    press(visitor, "d 3")
    expect(visitor.page.locator("[data-nothing]")).to_contain_text("all caught up.")
    expect(visitor.page.locator("[data-nothing]")).to_contain_text("Today: 1 denied.")
    expect(rows(visitor)).to_have_count(0)


def test_escape_leaves_a_form_and_keeps_its_edits(office: Office, visit: Visit) -> None:
    (card,) = waiting(office, 1)
    visitor = in_the_inbox(visit)
    shown = visitor.card(card.pk)
    press(visitor, "d Escape")
    assert_selected(visitor, card)
    expect(shown.locator(".deny")).not_to_have_attribute("open", "")
    press(visitor, "e")
    await_that(
        lambda: visitor.page.evaluate(FOCUSED) == "param.changes.status", "the form has come"
    )
    press(visitor, "ArrowDown")
    press(visitor, "Escape")
    expect(shown.locator(".edit > form")).to_be_visible()
    expect(shown.locator(".approve-button")).to_be_disabled()


def test_a_destructive_card_cannot_be_approved_with_a_single_key(
    office: Office, visit: Visit
) -> None:
    (card,) = waiting(office, 1, deletes=True)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, card)
    press(visitor, "a")
    assert visitor.page.evaluate(FOCUSED) == "confirm"
    press(visitor, "a Enter")
    expect(visitor.card(card.pk).locator(".approve-button")).to_be_disabled()
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING
    assert not [line for line in visitor.requests if line.startswith("POST")]
    visitor.card(card.pk).locator("[name=confirm]").fill("Company 0")
    press(visitor, "Enter")
    expect(toast(visitor)).to_contain_text("Approved: ")
    office.workshop.undo(Approval.objects.get(pk=card.pk))


def test_keys_that_were_turned_off_stay_off_after_a_reload(office: Office, visit: Visit) -> None:
    first, second, _ = waiting(office)
    visitor = in_the_inbox(visit)
    press(visitor, "?")
    dialog = visitor.page.get_by_role("dialog", name="Keyboard")
    expect(dialog).to_be_visible()
    press(visitor, "j")
    assert_selected(visitor, first)
    dialog.get_by_role("switch", name="Keyboard shortcuts").uncheck()
    dialog.get_by_role("button", name="Close").click()
    for _ in range(2):
        press(visitor, "j a ?")
        assert_selected(visitor, first)
        expect(dialog).to_be_hidden()
        visitor.page.reload()
        expect(visitor.page.locator("[data-keys-help]")).to_be_visible()
    visitor.page.locator("[data-keys-help]").click()
    dialog.get_by_role("switch", name="Keyboard shortcuts").check()
    press(visitor, "Escape j")
    assert_selected(visitor, second)


def test_a_viewer_can_move_the_selection_and_cannot_decide(office: Office, visit: Visit) -> None:
    _, second, _ = waiting(office)
    visitor = in_the_inbox(visit, "viewer")
    press(visitor, "j")
    assert_selected(visitor, second)
    press(visitor, "a d e")
    expect(visitor.page.locator("[data-announcer]")).to_have_text(
        "Only approvers can decide cards."
    )
    assert not [line for line in visitor.requests if line.startswith("POST")]


def test_title_and_icon_show_the_number_of_waiting_cards(office: Office, visit: Visit) -> None:
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
    press(visitor, "d")
    visitor.page.keyboard.type("half a rea")
    waiting(office, 1)
    expect(rows(visitor)).to_have_count(3)
    assert visitor.page.evaluate(FOCUSED) == "reason"
    expect(visitor.card(first.pk).locator("[name=reason]")).to_have_value("half a rea")


def test_a_card_decided_elsewhere_leaves_the_list(office: Office, visit: Visit) -> None:
    first, second, third = waiting(office)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    office.workshop.deny(third, "No")
    expect(row(visitor, third)).to_have_count(0)
    office.workshop.deny(first, "No")
    expect(visitor.card(first.pk)).to_contain_text("Denied by acme-approver")
    press(visitor, "j")
    assert_selected(visitor, second)
    expect(rows(visitor)).to_have_count(1)


@feature(
    "The inbox",
    "A decision moves less than 5 KB to each open inbox",
    "agents/web/sockets/inbox_feed.py",
)
def test_a_decision_sends_less_than_five_kilobytes_to_each_screen(
    office: Office, visit: Visit
) -> None:
    """The decider's screen also prefetches the next card, which is counted here."""
    first, second, *_ = waiting(office, 5)
    visitor, onlooker = in_the_inbox(visit), in_the_inbox(visit, "admin")
    assert_selected(visitor, first)
    assert_selected(onlooker, first)
    press(onlooker, "j j")
    for each in (visitor, onlooker):
        each.page.wait_for_function(QUIET)
    before = [each.page.evaluate(RECEIVED) for each in (visitor, onlooker)]
    press(visitor, "a")
    assert_selected(visitor, second)
    expect(row(onlooker, first)).to_have_count(0)
    spent = [
        each.page.evaluate(RECEIVED) - start
        for each, start in zip((visitor, onlooker), before, strict=True)
    ]
    assert max(spent) < 5_000, spent
    office.workshop.undo(Approval.objects.get(pk=first.pk))


def test_a_search_lists_only_matching_cards_including_new_cards(
    office: Office, visit: Visit
) -> None:
    waiting(office, 2)
    (card,) = waiting(office, 1, deletes=True)
    visitor = in_the_inbox(visit)
    press(visitor, "/")
    visitor.page.keyboard.type("permanently delete")
    press(visitor, "Enter")
    expect(rows(visitor)).to_have_count(1)
    assert_selected(visitor, card)
    waiting(office, 1)
    (fits,) = waiting(office, 1, deletes=True)
    expect(rows(visitor)).to_have_count(2)
    expect(row(visitor, fits)).to_be_visible()
