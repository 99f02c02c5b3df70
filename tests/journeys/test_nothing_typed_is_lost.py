"""Typed text is kept when the session ends, when other people decide, and when another card is
viewed."""

from __future__ import annotations

import re

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from playwright.sync_api import expect

from agents.runs.models import Approval, ApprovalStatus
from tests.awaiting import await_that
from tests.features import feature
from tests.journeys.office import Office
from tests.journeys.test_the_inbox_by_keyboard import (
    FOCUSED,
    assert_selected,
    in_the_inbox,
    press,
    row,
    rows,
    toast,
    waiting,
)
from tests.journeys.visitor import Visit, Visitor

pytestmark = pytest.mark.once

PASSWORD = "secret-enough"
STATUS = "[name='param.changes.status']"


def log_in_again(visitor: Visitor) -> None:
    visitor.page.get_by_label("Username").fill("acme-approver")
    visitor.page.get_by_label("Password").fill(PASSWORD)
    visitor.page.get_by_role("button", name="Log in", exact=True).click()


def open_edit(visitor: Visitor, card: Approval) -> None:
    visitor.card(card.pk).get_by_text("Edit…").click()
    expect(visitor.card(card.pk).locator(STATUS)).to_be_focused()


@feature(
    "The inbox",
    "Typed text survives the end of the session, another person's decision and a look at another card",
    "static/js/page/typed_texts.js",
)
@pytest.mark.parametrize("path", ["/approvals/", "/approvals/{card}/"])
@pytest.mark.every_commit
def test_an_edit_sent_after_the_session_ended_is_restored_after_the_login(
    office: Office, visit: Visit, path: str
) -> None:
    (card,) = waiting(office, 1)
    visitor = visit("approver")
    visitor.page.goto(path.format(card=card.pk))
    open_edit(visitor, card)
    visitor.card(card.pk).locator(STATUS).select_option("pending")
    Session.objects.all().delete()
    visitor.card(card.pk).get_by_role("button", name="Preview changes").press("Enter")
    expect(visitor.page.get_by_text("nothing was sent")).to_be_visible()
    visitor.page.get_by_label("Username").fill("acme-approver")
    visitor.page.get_by_label("Password").fill("wrong")
    visitor.page.get_by_role("button", name="Log in", exact=True).click()
    log_in_again(visitor)
    visitor.page.wait_for_url(f"**/approvals/{card.pk}/")
    expect(visitor.card(card.pk).locator(STATUS)).to_have_value("pending")
    expect(visitor.page.get_by_text("Your session had ended")).to_be_visible()
    visitor.card(card.pk).get_by_role("button", name="Preview changes").press("Enter")
    expect(visitor.page.get_by_text("This is the edited card")).to_be_visible()
    assert Approval.objects.get(status=ApprovalStatus.PENDING).params["changes"] == {
        "status": "pending"
    }


def test_without_scripts_an_unsent_reason_is_on_the_page_after_the_login(
    office: Office, visit: Visit
) -> None:
    (card,) = waiting(office, 1)
    visitor = visit("approver", scripts=False)
    visitor.page.goto(f"/approvals/{card.pk}/")
    visitor.card(card.pk).get_by_text("Deny…").click()
    visitor.card(card.pk).get_by_label(re.compile("Reason")).fill("ask <Ann> first")
    Session.objects.all().delete()
    visitor.card(card.pk).get_by_role("button", name="Deny", exact=True).click()
    log_in_again(visitor)
    expect(visitor.page.locator("[data-unsent] pre")).to_have_text("ask <Ann> first")
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING


def test_a_decision_after_the_session_ended_offers_the_login_and_keeps_the_reason(
    office: Office, visit: Visit
) -> None:
    (card,) = waiting(office, 1)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, card)
    press(visitor, "d")
    visitor.page.keyboard.type("not this one")
    Session.objects.all().delete()
    press(visitor, "Enter")
    expect(visitor.card(card.pk)).to_contain_text("you are logged out. Log in")
    expect(visitor.page.locator("body")).not_to_contain_text("Authorization: Bearer")
    visitor.page.get_by_role("link", name="Log in").click()
    log_in_again(visitor)
    expect(visitor.card(card.pk).locator("[name=reason]")).to_have_value("not this one")
    visitor.await_stillness(visitor.card(card.pk))
    visitor.card(card.pk).get_by_role("button", name="Deny", exact=True).click()
    await_that(
        lambda: Approval.objects.get(pk=card.pk).reason == "not this one",
        "the denial has its reason",
    )


def test_the_first_refused_request_shows_the_login_if_no_socket_reports_the_ended_session(
    office: Office, visit: Visit
) -> None:
    (card,) = waiting(office, 1)
    visitor = visit("approver")
    visitor.block_sockets()
    visitor.page.goto("/approvals/")
    assert_selected(visitor, card)
    Session.objects.all().delete()
    press(visitor, "a")
    banner = visitor.page.locator("[data-inbox-lost]")
    expect(banner).to_contain_text("You are logged out. Your text is kept.")
    expect(banner.get_by_role("link", name="Log in")).to_be_visible()
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING


def test_a_login_in_another_tab_reconnects_the_page(office: Office, visit: Visit) -> None:
    first, _ = waiting(office, 2)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    Session.objects.all().delete()
    press(visitor, "a")
    expect(visitor.page.locator("[data-inbox-lost]")).to_contain_text("You are logged out.")
    other = visitor.page.context.new_page()
    other.goto("/login/")
    other.get_by_label("Username").fill("acme-approver")
    other.get_by_label("Password").fill(PASSWORD)
    other.get_by_role("button", name="Log in", exact=True).click()
    other.wait_for_url("**/")
    visitor.page.bring_to_front()
    press(visitor, "a")
    expect(toast(visitor)).to_contain_text("Approved")
    expect(visitor.page.locator("[data-inbox-lost]")).to_be_hidden()
    waiting(office, 1)
    expect(rows(visitor)).to_have_count(2)
    expect(visitor.page.locator("[data-inbox-lost]")).to_be_hidden()
    office.workshop.undo(Approval.objects.get(pk=first.pk))


def test_a_socket_with_a_replaced_session_reconnects_silently(office: Office, visit: Visit) -> None:
    """The login comes before the socket of the ended session is closed."""
    waiting(office, 1)
    visitor = in_the_inbox(visit)
    ended = {cookie["name"]: cookie["value"] for cookie in visitor.page.context.cookies()}[
        settings.SESSION_COOKIE_NAME
    ]
    new = office.session(office.member("approver"))
    visitor.page.context.add_cookies(
        [{"name": settings.SESSION_COOKIE_NAME, "value": new, "url": office.url}]
    )
    with visitor.page.expect_websocket():
        Session.objects.get(session_key=ended).delete()
    waiting(office, 1)
    expect(rows(visitor)).to_have_count(2)
    expect(visitor.page.locator("[data-inbox-lost]")).to_be_hidden()


@pytest.mark.parametrize("path", ["/approvals/", "/approvals/{card}/", "/runs/{run}/"])
def test_an_edit_reports_that_another_person_decided_meanwhile(
    office: Office, visit: Visit, path: str
) -> None:
    (card,) = waiting(office, 1)
    visitor = visit("approver")
    visitor.page.goto(path.format(card=card.pk, run=card.run_id))
    open_edit(visitor, card)
    visitor.card(card.pk).locator(STATUS).select_option("pending")
    office.workshop.deny(card, "no", by=office.member("admin"))
    shown = visitor.card(card.pk)
    expect(shown).to_contain_text("Denied by acme-admin")
    expect(shown.locator(".typed-values")).to_contain_text("Your edit was not applied")
    expect(shown.locator(".typed-values dd")).to_have_text("pending")
    expect(visitor.page.get_by_role("alert")).to_contain_text("Your edit was not applied")


def test_viewing_another_card_keeps_a_half_typed_reason(office: Office, visit: Visit) -> None:
    first, second = waiting(office, 2)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, first)
    press(visitor, "d")
    visitor.page.keyboard.type("half a rea")
    row(visitor, second).locator("a").click()
    assert_selected(visitor, second)
    row(visitor, first).locator("a").click()
    assert_selected(visitor, first)
    expect(visitor.card(first.pk).locator("[name=reason]")).to_have_value("half a rea")


def test_the_e_key_focuses_the_field_whose_value_the_call_changes(
    office: Office, visit: Visit
) -> None:
    (card,) = waiting(office, 1)
    visitor = in_the_inbox(visit)
    assert_selected(visitor, card)
    press(visitor, "e")
    expect(visitor.card(card.pk).locator(STATUS)).to_be_focused()
    assert visitor.page.evaluate(FOCUSED) == "param.changes.status"


@pytest.mark.parametrize("is_shown", [True, False], ids=["of the shown card", "of another card"])
def test_the_u_key_in_a_second_tab_undoes_an_approval_made_in_the_first(
    office: Office, visit: Visit, is_shown: bool
) -> None:
    first, second = waiting(office, 2)
    other = visit("approver")
    shown = first if is_shown else second
    other.page.goto(f"/approvals/?card={shown.pk}")
    assert_selected(other, shown)
    office.workshop.approve(first, grace_s=60)
    expect(other.page.locator("[data-row]:not(.gone)")).to_have_count(1)
    if is_shown:
        expect(other.card(first.pk).get_by_role("button", name="Undo")).to_be_visible()
    press(other, "u")
    await_that(
        lambda: Approval.objects.get(pk=first.pk).status == ApprovalStatus.SUPERSEDED,
        "the approval is undone",
    )


def test_an_approval_can_be_undone_with_a_button_without_scripts(
    office: Office, visit: Visit
) -> None:
    card, _ = waiting(office, 2)
    plain = visit("approver", scripts=False)
    office.workshop.approve(card, grace_s=60)
    plain.page.goto("/approvals/")
    plain.page.locator("[data-undoable]").get_by_role("button", name="Undo").click()
    expect(plain.page.locator(".notice[role]")).to_contain_text("Undone")
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.SUPERSEDED
