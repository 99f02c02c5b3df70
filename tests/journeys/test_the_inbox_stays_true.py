"""The inbox stays correct while cards load, change, are snoozed and conflict: keys and clicks never
act on the wrong card."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Route, expect

from agents.approvals import decisions, snoozes
from agents.approvals.models import Snooze
from agents.runs.models import Approval, ApprovalStatus, RunStatus
from tests.awaiting import await_that
from tests.features import feature
from tests.journeys.office import Office
from tests.journeys.test_the_inbox_by_keyboard import (
    assert_selected,
    get_status,
    in_the_inbox,
    press,
    row,
    rows,
    toast,
    waiting,
)
from tests.journeys.visitor import Visit, Visitor
from tests.workshop import asking, call
from tests.workshop.colleagues import ask, may_ask, question_of

pytestmark = pytest.mark.once

FOCUSED_ROW = "() => document.activeElement.closest('[data-row]')?.dataset.row ?? ''"
PRESS_2_ONCE_SHOWN = """(id) => {
  const look = () => {
    if (!document.querySelector(`[data-pane] > [data-card="${id}"]`)) return requestAnimationFrame(look);
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "2", bubbles: true, cancelable: true }));
    window.wasPressed = true;
  };
  look();
}"""
"""Presses 2 as soon as the card is shown. This runs in the page, because a call from the test might
arrive only after the card has been shown long enough to be read."""


def said(visitor: Visitor) -> str:
    return visitor.page.locator("[data-announcer]").inner_text()


def edit(office: Office, card: Approval) -> Approval:
    """Let somebody else edit the card; return the card that replaces it."""
    params = card.params | {"changes": {"status": "pending"}}
    return decisions.edit(office.member("admin"), card.pk, decisions.Decision(card.digest), params)


@feature(
    "The inbox", "No key decides a card while another one is selected", "static/js/inbox/inbox.js"
)
def test_keys_do_not_decide_a_card_while_another_is_selected(office: Office, visit: Visit) -> None:
    first, second, third = waiting(office)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    visitor.page.route(f"**/approvals/{third.pk}/card/", hold)
    visitor.page.reload()  # after a reload no card is cached, so the request for the third is held
    press(visitor, "j")
    assert_selected(visitor, second)
    press(visitor, "j")
    await_that(lambda: len(held) > 0, "the card is asked for")
    press(visitor, "a d 1 Enter")
    expect(visitor.page.locator("[data-announcer]")).to_have_text(
        "The selected card is not shown yet."
    )
    assert not [line for line in visitor.requests if line.startswith("POST")]
    held[-1].continue_()
    assert_selected(visitor, third)
    press(visitor, "d 1")
    expect(rows(visitor)).to_have_count(2)
    assert [get_status(card) for card in (first, second, third)] == ["pending", "pending", "denied"]


@feature(
    "The inbox",
    "Cards on the same target name each other as soon as they arrive",
    "static/js/inbox/pane.js",
)
def test_cards_with_the_same_target_refer_to_each_other_immediately(
    office: Office, visit: Visit
) -> None:
    record = office.workshop.record(name="Shared")
    change = call("data.updateRecord", record_id=str(record.pk), changes={"status": "inactive"})
    office.workshop.play(asking(change))
    (first,) = office.await_cards(office.submit().pk)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    expect(visitor.card(first.pk).locator("[data-surroundings]")).not_to_contain_text(
        "Also affected by"
    )
    office.workshop.play(
        asking(call("data.updateRecord", record_id=str(record.pk), changes={"region": "UK"}))
    )
    (second,) = office.await_cards(office.submit().pk)
    expect(visitor.card(first.pk).locator("[data-surroundings]")).to_contain_text(
        f"Also affected by card {second.pk}"
    )
    press(visitor, "a")
    assert_selected(visitor, second)
    expect(visitor.card(second.pk)).to_contain_text(f"Also affected by card {first.pk} (approved)")
    office.workshop.undo(Approval.objects.get(pk=first.pk))


def test_keys_decide_the_new_card_after_an_edit_elsewhere_and_then_select_the_next_card(
    office: Office, visit: Visit
) -> None:
    first, second = waiting(office, 2)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    replacement = edit(office, first)
    visitor.page.get_by_role("button", name="Show the new card").click()
    assert_selected(visitor, replacement)
    press(visitor, "d 1")
    assert_selected(visitor, second)
    assert get_status(replacement) == ApprovalStatus.DENIED


def test_a_snoozed_card_stays_away_even_if_replaced_and_returns_on_time(
    office: Office, visit: Visit
) -> None:
    first, second, _ = waiting(office)
    visitor = in_the_inbox(visit)
    press(visitor, "s 1")
    expect(row(visitor, first)).to_have_count(0)
    replacement = edit(office, first)
    (other,) = waiting(office, 1)
    expect(row(visitor, other)).to_be_visible()
    expect(row(visitor, replacement)).to_have_count(0)
    snoozes.snooze(office.member("approver"), second.pk, "hour")
    Snooze.objects.update(until=timezone.now() + timedelta(seconds=4))
    visitor.page.reload()
    expect(rows(visitor)).to_have_count(2)
    expect(rows(visitor)).to_have_count(4)
    expect(row(visitor, replacement)).to_be_visible()


def test_the_u_key_undoes_approvals_one_after_another(office: Office, visit: Visit) -> None:
    first, second, third = waiting(office)
    visitor = in_the_inbox(visit)
    for card in (first, second):
        assert_selected(visitor, card)
        press(visitor, "a")
    assert_selected(visitor, third)
    press(visitor, "d 1")
    expect(toast(visitor)).to_have_count(3)
    press(visitor, "u")
    await_that(
        lambda: get_status(second) == ApprovalStatus.SUPERSEDED, "the second approval is undone"
    )
    press(visitor, "u")
    await_that(
        lambda: get_status(first) == ApprovalStatus.SUPERSEDED, "the first approval is undone"
    )
    expect(rows(visitor)).to_have_count(2)


def test_the_focus_follows_the_selection_and_is_never_lost(office: Office, visit: Visit) -> None:
    first, second = waiting(office, 2)
    visitor = in_the_inbox(visit)
    row(visitor, first).locator("a").focus()
    press(visitor, "d 1")
    assert_selected(visitor, second)
    row(visitor, second).locator("a").focus()
    press(visitor, "a")
    expect(visitor.page.locator("[data-nothing]")).to_be_focused()
    office.workshop.undo(Approval.objects.get(pk=second.pk))


def test_the_focus_moves_from_a_removed_row_to_the_next_row(office: Office, visit: Visit) -> None:
    first, second = waiting(office, 2)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    row(visitor, first).locator("a").focus()
    press(visitor, "a")
    assert_selected(visitor, second)
    assert visitor.page.evaluate(FOCUSED_ROW) == str(second.pk)
    office.workshop.undo(Approval.objects.get(pk=first.pk))


def test_enter_focuses_the_answer_and_a_digit_answers_only_the_question_that_was_shown(
    office: Office, visit: Visit
) -> None:
    may_ask(office.workshop.employee)
    office.workshop.play(asking(ask(choices=["London", "Paris"])))
    first, second = [
        question_of(office.await_status(office.submit().pk, RunStatus.WAITING)) for _ in range(2)
    ]
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    press(visitor, "Enter")
    assert visitor.page.evaluate("() => document.activeElement.name") == "text"
    visitor.page.evaluate(PRESS_2_ONCE_SHOWN, second.pk)
    press(visitor, "Escape 2")
    visitor.page.wait_for_function("() => window.wasPressed")
    assert_selected(visitor, second)
    assert (get_status(first), get_status(second)) == (
        ApprovalStatus.ANSWERED,
        ApprovalStatus.PENDING,
    )


def test_a_truncated_list_is_refilled_after_a_decision(office: Office, visit: Visit) -> None:
    first, second, third = waiting(office)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    visitor.page.evaluate(
        "(ids) => { for (const id of ids) document.getElementById(`row-${id}`).remove();"
        " document.querySelector('[data-desk]').dataset.isCut = ''; }",
        [second.pk, third.pk],
    )
    press(visitor, "d 1")
    assert_selected(visitor, second)
    expect(rows(visitor)).to_have_count(2)


def test_new_cards_appear_at_the_right_place_when_the_list_is_sorted_by_risk(
    office: Office, visit: Visit
) -> None:
    (deletion,) = waiting(office, 1, deletes=True)
    visitor = in_the_inbox(visit)
    visitor.page.goto("/approvals/?sort=risk")
    expect(rows(visitor)).to_have_count(1)
    (write,) = waiting(office, 1)
    (riskier,) = waiting(office, 1, deletes=True)
    expect(rows(visitor)).to_have_count(3)
    shown = [each.get_attribute("data-row") for each in rows(visitor).all()]
    assert shown == [str(card.pk) for card in (deletion, riskier, write)]
    assert_selected(visitor, deletion)


def test_a_viewer_cannot_select_cards(office: Office, visit: Visit) -> None:
    waiting(office)
    visitor = in_the_inbox(visit, "viewer")
    expect(rows(visitor)).to_have_count(3)
    expect(visitor.page.locator("[data-pick]:visible")).to_have_count(0)


def test_a_refused_snooze_is_explained(office: Office, visit: Visit) -> None:
    first, _ = waiting(office, 2)
    visitor = in_the_inbox(visit)
    press(visitor, "s")
    visitor.page.get_by_label("Until").fill("2099-01-01")
    visitor.page.get_by_role("button", name="Snooze until").click()
    expect(toast(visitor)).to_contain_text("choose a day within the next 60 days")
    expect(row(visitor, first)).to_be_visible()


def test_an_approval_can_be_undone_after_a_reload(office: Office, visit: Visit) -> None:
    first, second = waiting(office, 2)
    decisions.approve(
        office.member("approver"), first.pk, decisions.Decision(first.digest, grace_s=30)
    )
    visitor, other = in_the_inbox(visit), in_the_inbox(visit, "admin")
    assert_selected(visitor, second)
    expect(toast(visitor)).to_contain_text("Approved: Update record")
    expect(toast(other)).to_have_count(0)
    press(visitor, "u")
    expect(rows(visitor)).to_have_count(2)
    assert get_status(first) == ApprovalStatus.SUPERSEDED


def test_the_filters_show_updated_counts_when_a_card_arrives(office: Office, visit: Visit) -> None:
    waiting(office, 2)
    visitor = in_the_inbox(visit)
    chips = visitor.page.locator("[data-chips]")
    expect(chips.get_by_role("link", name="destructive")).to_have_count(0)
    waiting(office, 1, deletes=True)
    expect(chips.get_by_role("link", name="destructive 1")).to_be_visible()
    expect(chips.get_by_role("link", name="write 2")).to_be_visible()


def test_a_button_snoozes_the_card(office: Office, visit: Visit) -> None:
    (card,) = waiting(office, 1)
    visitor = in_the_inbox(visit)
    visitor.page.get_by_role("button", name="Snooze…").click()
    visitor.page.get_by_role("button", name="For an hour").click()
    expect(row(visitor, card)).to_have_count(0)
    expect(visitor.page.get_by_role("button", name="Snooze…")).to_be_hidden()
