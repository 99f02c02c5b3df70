"""Cards that need two people: one person's vote appears wherever the card is open, and another
person's next press only warns."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Locator, expect

from agents.approval_rules.models import ApprovalRule, Deputy
from agents.runs.models import Approval, ApprovalStatus, Vote
from tests.awaiting import await_that
from tests.features import feature
from tests.journeys.cut_links import SocketLink
from tests.journeys.office import Office
from tests.journeys.test_bulk_decisions import confirm
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

pytestmark = pytest.mark.once


@pytest.fixture(autouse=True)
def _two_people(office: Office) -> None:
    ApprovalRule.objects.create(
        organization=office.workshop.organization,
        name="two people",
        needed=2,
        tool="data.updateRecord",
    )


def standing(visitor: Visitor, card: Approval) -> Locator:
    return visitor.card(card.pk).locator("[data-standing]")


@feature(
    "The inbox",
    "Another person's vote reaches every open inbox, card and run, and the next press warns",
    "static/js/cards/votes.js",
)
@pytest.mark.every_commit
def test_a_vote_and_its_withdrawal_appear_in_the_inbox_on_the_card_and_on_the_run_page(
    office: Office, visit: Visit
) -> None:
    (card,) = waiting(office, 1)
    inbox, page, run = (visit("admin") for _ in range(3))
    inbox.page.goto("/approvals/")
    page.page.goto(f"/approvals/{card.pk}/")
    run.page.goto(f"/runs/{card.run_id}/")
    for visitor in (inbox, page, run):
        expect(standing(visitor, card)).to_contain_text("0 of 2")
    office.workshop.approve(card)
    for visitor in (inbox, page, run):
        expect(standing(visitor, card)).to_contain_text("1 of 2")
        expect(standing(visitor, card)).to_contain_text("Approved by acme-approver")
    expect(row(inbox, card)).to_contain_text("1 approval")
    office.workshop.undo(card)
    for visitor in (inbox, page, run):
        expect(standing(visitor, card)).to_contain_text("0 of 2")
    expect(row(inbox, card)).not_to_contain_text("1 approval")
    assert get_status(card) == ApprovalStatus.PENDING


def test_the_first_press_after_a_vote_warns_and_the_second_decides(
    office: Office, visit: Visit
) -> None:
    (card,) = waiting(office, 1)
    visitor = in_the_inbox(visit, "admin")
    assert_selected(visitor, card)
    office.workshop.approve(card)
    expect(standing(visitor, card)).to_contain_text("1 of 2")
    press(visitor, "a")
    expect(visitor.card(card.pk)).to_contain_text("acme-approver approved this meanwhile")
    assert get_status(card) == ApprovalStatus.PENDING
    press(visitor, "a")
    await_that(lambda: get_status(card) == ApprovalStatus.APPROVED, "the second press approves")
    office.workshop.undo(Approval.objects.get(pk=card.pk), by=office.member("admin"))


def test_a_vote_and_its_withdrawal_are_announced_and_warn_before_a_denial(
    office: Office, visit: Visit
) -> None:
    (card,) = waiting(office, 1)
    visitor = in_the_inbox(visit, "admin")
    assert_selected(visitor, card)
    office.workshop.approve(card)
    said = visitor.page.locator("[data-announcer]")
    expect(said).to_contain_text("acme-approver approved this. Still needed: 1 of 2")
    office.workshop.undo(card)
    expect(said).to_contain_text("acme-approver withdrew the approval. Still needed: 0 of 2")
    press(visitor, "d")
    visitor.page.keyboard.type("not now")
    press(visitor, "Enter")
    expect(visitor.card(card.pk)).to_contain_text("acme-approver withdrew the approval meanwhile")
    assert get_status(card) == ApprovalStatus.PENDING
    press(visitor, "Enter")
    await_that(lambda: get_status(card) == ApprovalStatus.DENIED, "the second press denies")


def test_a_vote_by_the_same_person_elsewhere_removes_the_buttons_without_a_warning(
    office: Office, visit: Visit
) -> None:
    (card,) = waiting(office, 1)
    visitor = visit("approver")
    visitor.page.goto(f"/approvals/{card.pk}/")
    shown = visitor.card(card.pk)
    expect(shown.locator(".approve-button")).to_be_visible()
    office.workshop.approve(card)
    expect(shown.locator(".approve-button")).to_be_hidden()
    expect(shown.get_by_role("button", name="Withdraw my approval")).to_be_visible()
    shown.get_by_role("button", name="Withdraw my approval").click()
    expect(shown.locator(".approve-button")).to_be_visible()
    assert not Vote.objects.filter(withdrawn_at=None).exists()


def test_a_deputy_sees_that_the_represented_member_has_approved_and_cannot_approve_too(
    office: Office, visit: Visit
) -> None:
    (card,) = waiting(office, 1)
    principal, deputy = office.member("approver"), office.member("admin")
    Deputy.objects.create(
        member=principal, deputy=deputy, ends_at=timezone.now() + timedelta(hours=1)
    )
    visitor = in_the_inbox(visit, "admin")
    assert_selected(visitor, card)
    office.workshop.approve(card)
    expect(standing(visitor, card)).to_contain_text("1 of 2")
    told = "acme-approver has approved this, and together you count as one approval."
    expect(visitor.card(card.pk).get_by_text(told)).to_be_visible()
    expect(visitor.card(card.pk).locator(".approve-button")).to_be_hidden()
    press(visitor, "a")
    expect(toast(visitor)).to_contain_text("together you count as one approval")
    assert get_status(card) == ApprovalStatus.PENDING


def test_the_server_detects_a_vote_that_no_event_announced(office: Office, visit: Visit) -> None:
    (card,) = waiting(office, 1)
    visitor = visit("admin")
    visitor.block_sockets()
    visitor.page.goto(f"/approvals/{card.pk}/")
    office.workshop.approve(card)
    visitor.approve(visitor.card(card.pk))
    expect(visitor.card(card.pk)).to_contain_text(
        "the approvals have changed: it is now approved by acme-approver"
    )
    expect(standing(visitor, card)).to_contain_text("Approved by acme-approver")
    assert get_status(card) == ApprovalStatus.PENDING
    visitor.approve(visitor.card(card.pk))
    await_that(lambda: get_status(card) == ApprovalStatus.APPROVED, "the second press approves")
    office.workshop.undo(Approval.objects.get(pk=card.pk), by=office.member("admin"))


def test_a_vote_missed_during_a_lost_connection_is_shown_afterwards(
    office: Office, visit: Visit
) -> None:
    (card,) = waiting(office, 1)
    visitor = visit("admin")
    link = SocketLink(visitor)
    visitor.page.goto("/approvals/")
    assert_selected(visitor, card)
    link.cut()
    office.workshop.approve(card)
    link.mend()
    expect(standing(visitor, card)).to_contain_text("1 of 2")


@feature(
    "The inbox",
    "Cards that the reader has approved wait for others at the end of the list, and can be collapsed",
    "static/js/inbox/rows.js",
)
def test_voting_selects_the_next_card_and_the_row_waits_for_others(
    office: Office, visit: Visit
) -> None:
    first, second = waiting(office, 2)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    press(visitor, "a")
    expect(toast(visitor)).to_contain_text("Your approval counts. Still needed: 1 of 2")
    assert_selected(visitor, second)
    expect(row(visitor, first)).to_contain_text("you approved, waiting for others")
    expect(rows(visitor).last).to_have_attribute("data-row", str(first.pk))
    fold = visitor.page.get_by_role("button", name="Waiting for others 1")
    fold.click()
    expect(row(visitor, first)).to_be_hidden()
    visitor.page.reload()
    expect(row(visitor, first)).to_be_hidden()
    assert_selected(visitor, second)
    press(visitor, "j")
    expect(toast(visitor)).to_contain_text("This is the last waiting card.")
    fold.click()
    expect(row(visitor, first)).to_be_visible()


def test_the_voter_stays_with_the_last_card_if_none_is_left_to_decide(
    office: Office, visit: Visit
) -> None:
    first, second = waiting(office, 2)
    visitor = in_the_inbox(visit)
    for card in (first, second):
        assert_selected(visitor, card)
        press(visitor, "a")
        expect(row(visitor, card)).to_contain_text("you approved, waiting for others")
    expect(standing(visitor, second)).to_contain_text("Approved by acme-approver")
    assert_selected(visitor, second)


def test_voting_on_the_page_of_a_card_shows_what_is_still_needed(
    office: Office, visit: Visit
) -> None:
    (card,) = waiting(office, 1)
    visitor = visit("approver")
    visitor.page.goto(f"/approvals/{card.pk}/")
    visitor.approve(visitor.card(card.pk))
    told = visitor.card(card.pk).locator("[data-outcome]")
    expect(told).to_contain_text("Your approval counts. Still needed: 1 of 2")
    expect(told).to_be_visible()
    expect(standing(visitor, card)).to_contain_text("Approved by acme-approver")


def test_the_u_key_withdraws_a_vote(office: Office, visit: Visit) -> None:
    first, second = waiting(office, 2)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    press(visitor, "a")
    assert_selected(visitor, second)
    press(visitor, "u")
    expect(toast(visitor).last).to_contain_text("Your approval is withdrawn")
    assert_selected(visitor, first)
    expect(row(visitor, first)).not_to_contain_text("waiting for others")
    assert not Vote.objects.filter(withdrawn_at=None).exists()


def test_votes_of_a_bulk_decision_are_undone_together(office: Office, visit: Visit) -> None:
    cards = waiting(office, 2)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, cards[0])
    press(visitor, "Shift+X Shift+A")
    confirm(visitor)
    expect(toast(visitor)).to_contain_text("Approved: 0 cards. 2 need more people.")
    toast(visitor).get_by_role("button", name="Undo").click()
    expect(visitor.page.locator("[data-toasts]")).to_contain_text("Undone: 2 votes withdrawn.")
    await_that(
        lambda: not Vote.objects.filter(withdrawn_at=None).exists(), "both votes are withdrawn"
    )
    for card in cards:
        expect(row(visitor, card)).not_to_contain_text("you approved")
