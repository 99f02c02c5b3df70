"""In a browser: a question is answered, and a delegated task is shown inside the panel of the
delegating run."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from agents.runs.models import ApprovalKind, ApprovalStatus, CallStatus, Run, RunStatus
from tests.awaiting import await_that
from tests.features import feature
from tests.journeys.office import Office
from tests.journeys.visitor import Visit
from tests.workshop import asking, call, statuses
from tests.workshop.colleagues import (
    ask,
    child_of,
    delegate,
    hire,
    may_ask,
    may_delegate,
    question_of,
)

pytestmark = pytest.mark.once


@pytest.fixture
def run(office: Office) -> Run:
    """Start a run that waits for an answer."""
    may_ask(office.workshop.employee)
    office.workshop.play(asking(ask("Which address is right?", choices=["North St", "South St"])))
    started = office.submit()
    return office.await_status(started.pk, RunStatus.WAITING)


class TestAQuestion:
    def test_is_answered_by_a_choice_and_everybody_sees_it(
        self, office: Office, visit: Visit, run: Run
    ) -> None:
        card = question_of(run)
        operator, reader = visit("operator"), visit("viewer")
        operator.open_run(run.pk)
        reader.open_run(run.pk)
        expect(reader.card(card.pk)).to_contain_text("Only operators can answer questions.")
        expect(reader.card(card.pk).get_by_role("button", name="South St")).to_be_hidden()
        operator.await_stillness(operator.card(card.pk))
        operator.card(card.pk).get_by_role("button", name="South St").click()
        expect(operator.card(card.pk)).to_contain_text("Answered by acme-operator")
        expect(reader.card(card.pk)).to_contain_text("South St")
        expect(operator.answer).to_contain_text("Done.")
        office.await_end(run.pk)
        assert statuses(run) == [CallStatus.SUCCEEDED]

    def test_remains_the_reason_why_its_run_waits_once_the_other_card_is_decided(
        self, office: Office, visit: Visit
    ) -> None:
        may_ask(office.workshop.employee)
        update = call(
            "data.updateRecord", record_id=str(office.workshop.record().pk), changes={"score": 5}
        )
        office.workshop.play(asking(ask("Which address is right?"), update))
        run = office.await_status(office.submit().pk, RunStatus.WAITING)
        (card,) = [
            each for each in office.workshop.cards(run) if each.kind == ApprovalKind.APPROVAL
        ]
        visitor = visit("viewer")
        visitor.open_run(run.pk)
        badge = visitor.page.locator("[data-badge]")
        expect(badge).to_have_text("Waiting for a decision")
        office.workshop.deny(card)
        expect(badge).to_have_text("Waiting for an answer")
        office.workshop.cancel(run)

    @pytest.mark.every_commit
    def test_can_be_answered_with_the_keyboard_alone(
        self, office: Office, visit: Visit, run: Run
    ) -> None:
        card = question_of(run)
        visitor = visit("approver")
        visitor.page.goto("/approvals/")
        for key in ("j", "a"):
            visitor.page.keyboard.press(key)
        field = visitor.card(card.pk).get_by_label("Or in your own words")
        expect(field).to_be_focused()
        visitor.page.keyboard.press("Escape")
        expect(visitor.card(card.pk)).to_be_focused()
        visitor.page.keyboard.press("d")
        expect(field).to_be_focused()
        card.refresh_from_db()
        assert card.status == ApprovalStatus.PENDING
        visitor.page.keyboard.type("Neither: West St")
        visitor.await_stillness(visitor.card(card.pk))
        visitor.page.keyboard.press("Tab")
        visitor.page.keyboard.press("Enter")
        expect(visitor.page.locator(".toast", has_text="Answered: ")).to_be_visible()
        office.await_end(run.pk)
        card.refresh_from_db()
        assert card.reason == "Neither: West St"

    @feature(
        "Questions and delegation",
        "An answer that is too long is refused with its length, and never cut",
        "templates/cards/question.html",
    )
    def test_keeps_an_answer_that_is_refused_as_too_long(
        self, office: Office, visit: Visit, run: Run
    ) -> None:
        card = question_of(run)
        visitor = visit("operator")
        visitor.open_run(run.pk)
        shown = visitor.card(card.pk)
        field, note = shown.get_by_label("Or in your own words"), shown.locator("[data-length]")
        field.fill("x" * 20_345)
        expect(note).to_have_text("20,345 of 20,000 characters: 345 too many.")
        visitor.await_stillness(shown)
        shown.get_by_role("button", name="Answer", exact=True).click()
        assert "345" in field.evaluate("(field) => field.validationMessage")
        assert len(field.input_value()) == 20_345
        field.fill("x" * 20_000)
        expect(note).to_have_text("20,000 of 20,000 characters")
        visitor.await_stillness(shown)
        shown.get_by_role("button", name="Answer", exact=True).click()
        office.await_end(run.pk)
        card.refresh_from_db()
        assert len(card.reason) == 20_000

    @feature(
        "Questions and delegation",
        "Questions are answered on the card: by a choice, with the keyboard, without scripts",
        "agents/web/views/decisions.py",
    )
    def test_can_be_answered_without_scripts(self, office: Office, visit: Visit, run: Run) -> None:
        card = question_of(run)
        visitor = visit("operator", scripts=False)
        visitor.page.goto(f"/approvals/{card.pk}/")
        visitor.card(card.pk).get_by_label("Or in your own words").fill("By hand")
        visitor.card(card.pk).get_by_role("button", name="Answer", exact=True).click()
        expect(visitor.page.locator("main")).to_contain_text("Answered")
        office.await_end(run.pk)
        card.refresh_from_db()
        assert (card.status, card.reason) == (ApprovalStatus.ANSWERED, "By hand")


@feature(
    "Questions and delegation",
    "The waiting run's panel shows the delegated run, and cards name the delegating employee",
    "agents/web/panel/child_runs.py",
)
def test_a_delegated_task_is_shown_in_the_panel_of_the_delegating_run(
    office: Office, visit: Visit
) -> None:
    workshop, record = office.workshop, office.workshop.record()
    change = call("data.updateRecord", record_id=str(record.pk), changes={"status": "inactive"})
    kim = hire(workshop, "Kim", asking(change), answer="Acme is inactive now.")
    may_delegate(workshop.employee, kim)
    workshop.play(
        asking(delegate("Kim", "Set Acme to inactive")),
        answer="Kim says: {{ calls[0].data.answer }}",
    )
    visitor = visit("approver")
    run = office.submit()
    visitor.open_run(run.pk)
    nested = visitor.page.locator(".child")
    expect(nested).to_contain_text("1 card waiting in this run")
    expect(visitor.page.locator("[data-badge]")).to_have_text("Waiting for a colleague")
    nested.get_by_role("link", name="Set Acme to inactive").click()
    child = child_of(run)
    visitor.page.wait_for_url(f"**/runs/{child.pk}/")
    expect(visitor.page.locator(".run-parent")).to_contain_text("Dana delegated this to Kim")
    (card,) = office.await_cards(child.pk)
    expect(visitor.card(card.pk)).to_contain_text("Dana asked Kim")
    visitor.page.go_back()
    workshop.approve(card)
    expect(nested.locator(".badge")).to_have_text("Succeeded")
    expect(nested).to_contain_text("Acme is inactive now.")
    expect(visitor.answer).to_contain_text("Kim says: Acme is inactive now.")
    office.await_end(run.pk)
    visitor.assert_panel_is_whole(run.pk)
    await_that(lambda: statuses(run) == [CallStatus.SUCCEEDED], "the call has its result")
