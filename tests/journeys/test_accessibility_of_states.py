"""axe finds no fault in the opened, refused, running and disconnected states of pages, in light and
dark mode."""

from __future__ import annotations

from functools import partial

import pytest
from django.contrib.sessions.models import Session
from django.template.loader import render_to_string
from playwright.sync_api import FilePayload, Page, Route, expect

from agents.accounts import members
from agents.accounts.models import Membership
from agents.runs.models import Approval
from tests.journeys.office import Office
from tests.journeys.test_accessibility import find_faults
from tests.journeys.visitor import Visit
from tests.model_server import Call, ModelServer, Response
from tests.workshop import asking, call
from tests.workshop.colleagues import ask, delegate, hire, may_ask, may_delegate, question_of
from tools.office.records.changes import ChangeAuthor, create_record

pytestmark = pytest.mark.once

BAD_ROWS = "name,status\nNorth,active\nSouth,dead\n,active\n"
SUBMIT = "() => document.querySelector('form.approve').submit()"


class StateChecker:
    """Collects the accessibility faults of a page's states."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._faults: list[str] = []

    def check(self, state: str) -> None:
        """Check the page in its current state."""
        self._faults += find_faults(self._page, state)

    def assert_clear(self) -> None:
        assert not self._faults, "\n".join(self._faults)


def two_cards(office: Office) -> list[Approval]:
    """Create a card that can be edited, and a destructive one with a folded list."""
    records = [office.workshop.record(name=f"Acme {number}") for number in range(7)]
    update = call(
        "data.updateRecord",
        record_id=str(records[0].pk),
        changes={"status": "inactive", "notes": "x" * 300},
    )
    deletion = call("data.bulkDelete", record_ids=[str(record.pk) for record in records])
    office.workshop.play(asking(update, deletion, text="I found seven."))
    return office.await_cards(office.submit().pk, 2)


def test_open_cards_pass_axe(office: Office, visit: Visit) -> None:
    update, deletion = two_cards(office)
    visitor = visit("approver")
    page, checker = visitor.page, StateChecker(visitor.page)
    page.goto(f"/approvals/{deletion.pk}/")
    destructive = visitor.card(deletion.pk)
    checker.check("the list unread")
    destructive.get_by_text("Show all 7").click()
    destructive.get_by_text("Exact request").click()
    destructive.locator("[data-confirm]").fill("7")
    expect(destructive.locator(".approve-button")).to_be_enabled()
    checker.check("confirmed by typing")

    page.goto(f"/approvals/{update.pk}/")
    card = visitor.card(update.pk)
    card.get_by_text("Deny…").click()
    expect(card.get_by_label("Reason (sent to Dana)")).to_be_visible()
    checker.check("the form to deny")
    card.get_by_text("Edit…").click()
    card.locator("select[name='param.changes.status']").select_option("pending")
    expect(card.locator("[data-unsaved]")).to_be_visible()
    checker.check("the form to edit")
    visitor.await_stillness(card)
    card.get_by_role("button", name="Preview changes").click()
    expect(page.locator(".changed")).to_be_visible()
    checker.check("the changed card")
    changed = visitor.open_cards.first
    changed.get_by_role("button", name="Show all").click()
    visitor.approve(changed)
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    checker.check("approved, with undo")
    office.end_grace()
    office.workshop.deny(deletion)
    checker.assert_clear()


def test_a_warning_on_a_card_passes_axe(office: Office, visit: Visit) -> None:
    office.workshop.record(name="Acme Corp")
    twin = create_record(
        office.workshop.organization.pk, {"name": "\u0410cme Corp"}, ChangeAuthor("test")
    )
    office.workshop.play(
        asking(call("data.updateRecord", record_id=str(twin.pk), changes={"phone": "+1"}))
    )
    (card,) = office.await_cards(office.submit().pk)
    visitor = visit("approver")
    checker = StateChecker(visitor.page)
    visitor.page.goto(f"/approvals/{card.pk}/")
    expect(visitor.card(card.pk).locator(".approve-button .mixed-host")).to_be_visible()
    expect(visitor.card(card.pk).locator(".similar")).to_be_visible()
    checker.check("a name that looks like another")
    office.workshop.deny(card)
    checker.assert_clear()


def test_questions_and_delegated_tasks_pass_axe(office: Office, visit: Visit) -> None:
    may_ask(office.workshop.employee)
    kim = hire(office.workshop, "Kim", asking(ask("Which?")), answer="From Kim.")
    may_delegate(office.workshop.employee, kim)
    office.workshop.play(asking(ask("Which address?", choices=["North", "South"]), delegate("Kim")))
    run = office.submit()
    card = question_of(office.await_status(run.pk, "waiting"))
    visitor = visit("operator")
    page, checker = visitor.page, StateChecker(visitor.page)
    page.goto(f"/approvals/{card.pk}/")
    checker.check("a question")
    page.goto(f"/runs/{run.pk}/")
    expect(page.locator(".child")).to_contain_text("1 card waiting in this run")
    page.locator(".child-lines > summary").click()
    checker.check("a delegated task")
    visitor.await_stillness(visitor.card(card.pk))
    visitor.card(card.pk).get_by_role("button", name="South").click()
    expect(visitor.card(card.pk)).to_contain_text("Answered by")
    checker.check("an answered question")
    office.workshop.cancel(run)
    checker.assert_clear()


def test_dialogs_of_the_inbox_and_of_users_pass_axe(office: Office, visit: Visit) -> None:
    two_cards(office)
    visitor = visit("admin")
    page, checker = visitor.page, StateChecker(visitor.page)
    page.goto("/approvals/")
    page.keyboard.press("j")
    checker.check("a selected card")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    checker.check("the help for shortcuts")

    page.goto("/users/")
    page.get_by_text("Change… acme-viewer").click()
    page.locator(".change[open] .removal > summary").click()
    expect(page.get_by_role("button", name="Remove “acme-viewer”")).to_be_visible()
    checker.check("the changes of a member")
    page.get_by_role("button", name="Create password link").click()
    expect(page.locator("#new-link")).to_be_visible()
    checker.check("a link that is shown once")
    checker.assert_clear()


def test_reports_of_imports_pass_axe(office: Office, visit: Visit) -> None:
    visitor = visit("admin")
    page, checker = visitor.page, StateChecker(visitor.page)
    page.goto("/records/import/")
    for name, text, told in (
        ("a.csv", BAD_ROWS, "1 record imported"),
        ("b.csv", "no header", "Nothing was imported"),
    ):
        file = FilePayload(name=name, mimeType="text/csv", buffer=text.encode())
        page.get_by_label("CSV file").set_input_files(file)
        page.get_by_role("button", name="Import").click()
        expect(page.locator("main")).to_contain_text(told)
        checker.check(told)
    checker.assert_clear()


def test_a_running_run_and_a_lost_connection_pass_axe(
    office: Office, visit: Visit, model: ModelServer
) -> None:
    office.workshop.connect(model.url)
    office.recorder.hold("one")
    gate = Call("probe.gate", {"name": "one"})
    look = Call("data.searchRecords", {"region": "EU"})
    model.enqueue(
        Response(text="I look.", calls=(gate, look)),
        Response(text="A long answer, word by word.", hold="middle"),
    )
    visitor = visit("operator")
    page, checker = visitor.page, StateChecker(visitor.page)
    run_id = visitor.start("Dana", "Write an answer")
    office.recorder.await_arrival("one")
    office.await_bells(run_id)
    expect(page.locator(".call .spinner")).to_have_count(1)
    page.locator(".call > .unfold > summary").first.click()
    page.get_by_text("Cancel…").click()
    checker.check("calls that run")
    office.recorder.release("one")
    model.wait_for_held()
    expect(page.locator(".model-text.streaming")).to_contain_text("A long")
    checker.check("text that streams")
    model.release()
    office.await_end(run_id)
    expect(visitor.answer).to_be_visible()

    elsewhere = visit("operator")
    elsewhere.page.goto("/approvals/")
    Session.objects.all().delete()
    for one, bar in (
        (visitor, visitor.lost_bar),
        (elsewhere, elsewhere.page.locator("[data-inbox-lost]")),
    ):
        expect(bar).to_contain_text("You are logged out")
        lost = StateChecker(one.page)
        lost.check("a lost connection")
        lost.assert_clear()
    checker.assert_clear()


def test_pages_of_refusals_pass_axe(office: Office, visit: Visit) -> None:
    update, _ = two_cards(office)
    visitor = visit("viewer")
    page, checker = visitor.page, StateChecker(visitor.page)
    for path in ("/no/such/page/", "/join/gone/", "/new-password/gone/"):
        response = page.goto(path)
        assert response is not None
        assert response.status == 404
        checker.check(path)
    page.goto(f"/approvals/{update.pk}/")
    checker.check("a card that the reader cannot decide")
    with page.expect_navigation():
        page.evaluate(SUBMIT)
    expect(page.get_by_role("heading", name="Not allowed")).to_be_visible()
    checker.check("a decision that is refused")
    _, secret = members.create_password_reset(office.member("admin"), office.member("viewer").pk)
    page.goto(f"/new-password/{secret}/")
    page.get_by_label("New password", exact=True).fill("correct-horse-battery")
    page.get_by_label("Repeat new password").fill("correct-horse-buttery")
    page.get_by_role("button", name="Set password").click()
    expect(page.get_by_role("alert")).to_contain_text("do not match")
    checker.check("passwords that differ")
    Membership.objects.filter(pk=office.member("viewer").pk).delete()
    page.goto("/")
    expect(page.get_by_role("heading", name="No organization")).to_be_visible()
    checker.check("no organization")
    checker.assert_clear()


def test_failed_logins_pass_axe(office: Office, visit: Visit) -> None:
    visitor = visit()
    page, checker = visitor.page, StateChecker(visitor.page)

    def log_in() -> None:
        page.get_by_label("Username").fill("somebody")
        page.get_by_label("Password").fill("wrong")
        with page.expect_navigation():
            page.get_by_role("button", name="Log in").click()

    page.goto("/login/")
    page.context.clear_cookies()
    log_in()
    expect(page.get_by_role("alert")).to_contain_text("has expired")
    checker.check("a form without its token")
    page.goto("/login/")
    log_in()
    expect(page.get_by_role("alert")).to_contain_text("password")
    checker.check("a wrong password")
    for template, told in (
        ("login/locked.html", "Too many attempts"),
        ("500.html", "Something went wrong"),
    ):
        page.route(
            "**/as-it-would-be/",
            partial(
                Route.fulfill,
                body=render_to_string(template, {"minutes": 15}),
                content_type="text/html",
            ),
        )
        page.goto("/as-it-would-be/")
        expect(page.get_by_role("heading", name=told)).to_be_visible()
        checker.check(told)
    checker.assert_clear()
