"""Cards that come late: a key acts on the selected card alone, and only while that card is shown."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

from agents.approval_rules.models import ApprovalRule
from agents.approvals.models import Vote
from agents.runs.models import Approval, ApprovalStatus, RunStatus
from tests.journeys.office import Office
from tests.journeys.test_the_inbox_by_keyboard import assert_selected, press, row, toast, waiting
from tests.journeys.visitor import Visit, Visitor
from tests.workshop import asking
from tests.workshop.colleagues import ask, may_ask

pytestmark = pytest.mark.once

LOADING = "Loading the card…"


def visit_slowly(visit: Visit, late: Approval) -> tuple[Visitor, list[Route]]:
    """Open the inbox; the card that is late waits in the list of held answers."""
    visitor, held = visit("approver"), list[Route]()
    address = re.compile(rf"/approvals/{late.pk}/card/")
    visitor.page.route(address, lambda route: held.append(route), times=1)  # noqa: PLW0108 - Playwright inspects it
    visitor.page.goto("/approvals/")
    expect(visitor.page.locator("[data-keys-help]")).to_be_visible()
    return visitor, held


def release(visitor: Visitor, held: list[Route], late: Approval) -> None:
    """Let the card come, and wait until the page has it."""
    assert len(held) == 1, "the card was asked for once"
    with visitor.page.expect_response(re.compile(rf"/approvals/{late.pk}/card/")) as arrived:
        held[0].continue_()
    arrived.value.finished()
    visitor.page.evaluate("() => new Promise((resolve) => setTimeout(resolve))")


def test_a_card_that_comes_late_is_not_shown_under_a_later_selection(office: Office, visit: Visit) -> None:
    _, second, third = waiting(office)
    visitor, held = visit_slowly(visit, second)
    press(visitor, "j")
    expect(visitor.page.get_by_text(LOADING)).to_be_visible()
    press(visitor, "j")
    assert_selected(visitor, third)
    release(visitor, held, second)
    assert_selected(visitor, third)


def test_the_way_back_to_the_shown_card_shows_it_at_once(office: Office, visit: Visit) -> None:
    first, second, _ = waiting(office)
    visitor, held = visit_slowly(visit, second)
    press(visitor, "j")
    expect(visitor.card(first.pk)).to_be_hidden()
    press(visitor, "k")
    expect(visitor.page.get_by_text(LOADING)).to_be_hidden()
    assert_selected(visitor, first)
    release(visitor, held, second)
    assert_selected(visitor, first)


def test_a_number_answers_no_question_while_another_is_selected(office: Office, visit: Visit) -> None:
    may_ask(office.workshop.employee)
    office.workshop.play(asking(ask(choices=["London", "Paris"])))
    runs = [office.await_status(office.submit().pk, RunStatus.WAITING) for _ in range(2)]
    first, second = (Approval.objects.get(run=run) for run in runs)
    visitor, held = visit_slowly(visit, second)
    expect(visitor.card(first.pk)).to_be_visible()
    press(visitor, "j 1")
    expect(toast(visitor)).to_contain_text("The selected card is not shown yet.")
    release(visitor, held, second)
    assert_selected(visitor, second)
    assert set(Approval.objects.values_list("status", flat=True)) == {ApprovalStatus.PENDING}


@pytest.mark.parametrize("key", ["o", "Enter", "e", "d", "t"])
def test_no_key_acts_on_the_card_before_the_selected_one(office: Office, visit: Visit, key: str) -> None:
    _, second, _ = waiting(office)
    visitor, held = visit_slowly(visit, second)
    press(visitor, f"j {key}")
    expect(toast(visitor)).to_contain_text("The selected card is not shown yet.")
    release(visitor, held, second)
    assert_selected(visitor, second)
    expect(visitor.page).to_have_url(re.compile(rf"/approvals/\?card={second.pk}$"))
    expect(visitor.page.locator(".actions > details[open]")).to_have_count(0)


def test_u_withdraws_no_vote_on_a_card_that_is_not_shown(office: Office, visit: Visit) -> None:
    ApprovalRule.objects.create(
        organization=office.workshop.organization, name="two people", needed=2, tool="data.updateRecord"
    )
    first, second = waiting(office, 2)
    office.workshop.approve(first)
    visitor, held = visit_slowly(visit, second)
    visitor.page.goto(f"/approvals/?card={first.pk}")
    expect(visitor.card(first.pk).get_by_role("button", name="Withdraw my approval")).to_be_visible()
    row(visitor, second).locator("a").click()
    expect(visitor.page.get_by_text(LOADING)).to_be_visible()
    press(visitor, "u")
    expect(toast(visitor)).to_contain_text("No approval can be undone.")
    release(visitor, held, second)
    assert_selected(visitor, second)
    assert Vote.objects.filter(withdrawn_at=None).count() == 1
