"""In a browser: open pages show the outcome of a decided card without a reload."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.features import feature
from tests.journeys.office import Office
from tests.journeys.visitor import Visit
from tests.workshop import asking, call

pytestmark = pytest.mark.once


@feature(
    "Pages",
    "A decided card on an open screen shows what happened then",
    "static/js/cards/outcomes.js",
)
def test_the_inbox_and_the_history_show_a_decision_and_its_outcome_without_a_reload(
    office: Office, visit: Visit
) -> None:
    record = office.workshop.record()
    update = call("data.updateRecord", record_id=str(record.pk), changes={"status": "inactive"})
    office.workshop.play(asking(update, text="I look."))
    run = office.submit()
    (card,) = office.await_cards(run.pk)
    inbox, history = visit("approver").page, visit("viewer").page
    inbox.goto("/approvals/")
    history.goto("/approvals/?history=1")
    expect(inbox.locator(f"#card-{card.pk}")).to_be_visible()
    expect(history.get_by_text("No decisions yet.")).to_be_visible()
    office.workshop.approve(card)
    office.await_end(run.pk)
    shown = inbox.locator(f"#card-{card.pk}")
    expect(shown).to_contain_text("Approved by acme-approver")
    expect(shown.locator("[data-report]")).to_contain_text("Succeeded: ")
    row = history.locator(".decisions > li").first
    expect(row).to_contain_text("Approved by acme-approver")
    expect(row.locator("[data-report]")).to_contain_text("Succeeded: ")
