"""Claimed cards in two browsers: others see the claimant immediately, and are warned before they
decide such a card."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from agents.approvals import attention
from agents.runs.models import ApprovalStatus
from tests.awaiting import await_that
from tests.features import feature
from tests.journeys.office import Office
from tests.journeys.test_the_inbox_by_keyboard import (
    assert_selected,
    get_status,
    in_the_inbox,
    press,
    row,
    toast,
    waiting,
)
from tests.journeys.visitor import Visit

pytestmark = pytest.mark.once


@feature("The inbox", "A claim is shown in open inboxes at once", "static/js/inbox/attention.js")
def test_a_claimed_card_warns_others_and_is_decided_by_their_second_press(
    office: Office, visit: Visit
) -> None:
    first, second = waiting(office, 2)
    taker, other = in_the_inbox(visit), in_the_inbox(visit, "admin")
    assert_selected(other, first)
    press(taker, "t")
    expect(toast(taker)).to_contain_text("Yours for 15 minutes. Others are warned.")
    expect(row(other, first)).to_contain_text("taken by acme-approver")
    claim = other.card(first.pk).locator(".claim")
    expect(claim).to_contain_text("acme-approver has taken this card")
    expect(claim.get_by_role("button")).to_be_hidden()
    press(other, "a")
    expect(other.card(first.pk)).to_contain_text(
        "acme-approver has taken this card. Press again to decide it anyway."
    )
    assert get_status(first) == ApprovalStatus.PENDING
    press(other, "a")
    assert_selected(other, second)
    assert get_status(first) == ApprovalStatus.APPROVED


def test_the_claimant_can_release_the_card_or_decide_it_immediately(
    office: Office, visit: Visit
) -> None:
    first, second = waiting(office, 2)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    press(visitor, "t")
    visitor.card(first.pk).locator(".claim").get_by_role("button", name="Release it").click()
    await_that(lambda: attention.find_claims(first.organization_id) == {}, "the claim is released")
    expect(row(visitor, first)).not_to_contain_text("taken by")
    press(visitor, "t")
    expect(visitor.card(first.pk).locator(".claim")).to_be_visible()
    press(visitor, "a")
    assert_selected(visitor, second)
    assert get_status(first) == ApprovalStatus.APPROVED


def test_a_group_is_selected_without_cards_claimed_by_others(office: Office, visit: Visit) -> None:
    cards = waiting(office, 3)
    attention.take(office.member("admin"), cards[1].pk)
    visitor = in_the_inbox(visit)
    expect(row(visitor, cards[1])).to_contain_text("taken by acme-admin")
    press(visitor, "Shift+X")
    expect(visitor.page.locator("[data-bulk-count]")).to_have_text("2")
    expect(row(visitor, cards[1]).locator("[data-pick]")).not_to_be_checked()
