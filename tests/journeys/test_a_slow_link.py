"""Cards that load late: a key acts only on the selected card, and only while that card is shown."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

from agents.approval_rules.models import ApprovalRule
from agents.runs.models import Approval, ApprovalStatus, RunStatus, Vote
from tests.journeys.office import Office
from tests.journeys.test_the_inbox_by_keyboard import assert_selected, press, row, toast, waiting
from tests.journeys.visitor import Visit, Visitor
from tests.workshop import asking
from tests.workshop.colleagues import ask, may_ask

pytestmark = pytest.mark.once

LOADING = "Loading the card…"


class LateCard:
    """The responses with one card, which a test delays."""

    def __init__(self, visitor: Visitor, card: Approval) -> None:
        self._page, self._address = visitor.page, re.compile(rf"/approvals/{card.pk}/card/")
        self._held: list[Route] = []
        self._is_late = True
        self._page.route(self._address, self._receive)

    def _receive(self, route: Route) -> None:
        if self._is_late:
            self._held.append(route)
        else:
            route.continue_()

    def release(self) -> None:
        """Release the card, and wait until the page has it."""
        assert self._held, "the card was asked for"
        self._is_late = False
        with self._page.expect_response(self._address) as arrived:
            for route in self._held:
                route.continue_()
        arrived.value.finished()
        self._page.evaluate("() => new Promise((resolve) => setTimeout(resolve))")


def visit_slowly(
    visit: Visit, late: Approval, path: str = "/approvals/"
) -> tuple[Visitor, LateCard]:
    visitor = visit("approver")
    card = LateCard(visitor, late)
    visitor.page.goto(path)
    # The button appears once the script of the inbox runs.
    expect(visitor.page.locator("[data-snooze-button]")).to_be_visible()
    return visitor, card


def test_a_slow_card_is_not_shown_under_a_later_selection(office: Office, visit: Visit) -> None:
    _, second, third = waiting(office)
    visitor, late = visit_slowly(visit, second)
    press(visitor, "j")
    expect(visitor.page.get_by_text(LOADING)).to_be_visible()
    press(visitor, "j")
    assert_selected(visitor, third)
    late.release()
    assert_selected(visitor, third)


def test_returning_to_a_loaded_card_shows_it_immediately(office: Office, visit: Visit) -> None:
    first, second, _ = waiting(office)
    visitor, late = visit_slowly(visit, second)
    press(visitor, "j")
    expect(visitor.card(first.pk)).to_be_hidden()
    press(visitor, "k")
    expect(visitor.page.get_by_text(LOADING)).to_be_hidden()
    assert_selected(visitor, first)
    late.release()
    assert_selected(visitor, first)


def test_a_digit_does_not_answer_a_question_while_another_is_selected(
    office: Office, visit: Visit
) -> None:
    may_ask(office.workshop.employee)
    office.workshop.play(asking(ask(choices=["London", "Paris"])))
    runs = [office.await_status(office.submit().pk, RunStatus.WAITING) for _ in range(2)]
    first, second = (Approval.objects.get(run=run) for run in runs)
    visitor, late = visit_slowly(visit, second)
    expect(visitor.card(first.pk)).to_be_visible()
    press(visitor, "j 1")
    expect(toast(visitor)).to_contain_text("The selected card is not shown yet.")
    late.release()
    assert_selected(visitor, second)
    assert set(Approval.objects.values_list("status", flat=True)) == {ApprovalStatus.PENDING}


@pytest.mark.parametrize("key", ["o", "Enter", "e", "d", "t"])
def test_a_key_does_not_act_on_the_previously_selected_card(
    office: Office, visit: Visit, key: str
) -> None:
    _, second, _ = waiting(office)
    visitor, late = visit_slowly(visit, second)
    press(visitor, f"j {key}")
    expect(toast(visitor)).to_contain_text("The selected card is not shown yet.")
    late.release()
    assert_selected(visitor, second)
    expect(visitor.page).to_have_url(re.compile(rf"/approvals/\?card={second.pk}$"))
    expect(visitor.page.locator(".actions > details[open]")).to_have_count(0)


def test_the_u_key_does_not_withdraw_a_vote_on_a_card_that_is_not_shown(
    office: Office, visit: Visit
) -> None:
    ApprovalRule.objects.create(
        organization=office.workshop.organization,
        name="two people",
        needed=2,
        tool="data.updateRecord",
    )
    first, second = waiting(office, 2)
    office.workshop.approve(first)
    visitor, late = visit_slowly(visit, second, f"/approvals/?card={first.pk}")
    expect(
        visitor.card(first.pk).get_by_role("button", name="Withdraw my approval")
    ).to_be_visible()
    row(visitor, second).locator("a").click()
    expect(visitor.page.get_by_text(LOADING)).to_be_visible()
    press(visitor, "u")
    expect(toast(visitor)).to_contain_text("No approval can be undone.")
    late.release()
    assert_selected(visitor, second)
    assert Vote.objects.filter(withdrawn_at=None).count() == 1
