"""In a browser: two runs request the same change; the second card says that the change was already
made, and is dismissed."""

from __future__ import annotations

from playwright.sync_api import expect

from agents.runs.models import ApprovalStatus, CallStatus
from tests.awaiting import await_that
from tests.journeys.office import Office
from tests.journeys.visitor import Visit
from tests.workshop import asking, call, calls


def test_a_card_whose_change_another_run_made_can_be_dismissed_and_its_run_continues(
    office: Office, visit: Visit
) -> None:
    workshop = office.workshop
    record = workshop.record(name="Acme Corp", status="active")
    workshop.play(
        asking(call("data.updateRecord", record_id=str(record.pk), changes={"status": "inactive"}))
    )
    first, second = workshop.submit("Deactivate Acme"), workshop.submit("Deactivate Acme, too")
    await_that(lambda: bool(workshop.cards(first) and workshop.cards(second)), "both runs ask")
    card = workshop.card(second)
    workshop.approve(workshop.card(first))
    office.await_end(first.pk)
    visitor = visit("approver")
    visitor.page.goto(f"/approvals/{card.pk}/")
    shown = visitor.card(card.pk)
    expect(shown).to_contain_text("Already done")
    expect(shown).to_contain_text(f"run {first.pk}")
    expect(shown.locator(".approve-button")).to_have_count(0)
    shown.get_by_text("Deny…").click(trial=True)  # a trial click: nothing covers it
    visitor.await_stillness(shown)
    shown.get_by_role("button", name="Dismiss").click()
    office.await_end(second.pk)
    card.refresh_from_db()
    (dismissed,) = calls(second)
    assert (card.status, dismissed.status) == (ApprovalStatus.ANSWERED, CallStatus.REJECTED)
    assert "there was nothing to do" in dismissed.content
    record.refresh_from_db()
    assert (record.status, record.version) == ("inactive", 2)
