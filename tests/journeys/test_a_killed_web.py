"""Open pages recover when the web process is killed and another one starts."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.journeys.api_client import select_events
from tests.journeys.office import Office, list_event_numbers
from tests.journeys.test_the_live_page import await_gate, gates_and_calls
from tests.journeys.visitor import Visit

pytestmark = pytest.mark.once


def test_an_open_page_recovers_after_the_web_process_was_killed(
    office: Office, visit: Visit
) -> None:
    office.workshop.play(*gates_and_calls("one", "two", "three"))
    for gate in ("one", "two", "three"):
        office.recorder.hold(gate)
    visitor, elsewhere = visit("operator"), visit("operator")
    elsewhere.page.goto("/approvals/")
    elsewhere_lost = elsewhere.page.locator("[data-inbox-lost]")
    run_id = visitor.start("Dana", "Pass three gates")
    await_gate(office, "one")
    expect(elsewhere_lost).to_be_hidden()
    expect(visitor.page.locator(".call .spinner")).to_have_count(1)
    expect(visitor.lost_bar).to_be_hidden()
    office.web.kill()
    try:
        expect(visitor.lost_bar).to_be_visible()
        for bar in (visitor.lost_bar, elsewhere_lost):
            expect(bar).to_contain_text("Connection lost")
        office.recorder.release("one")
        await_gate(office, "two")
    finally:
        office.installation.start_web()  # all later journeys need it
    for bar in (visitor.lost_bar, elsewhere_lost):
        expect(bar).to_be_hidden()
    visitor.assert_panel_is_whole(run_id)
    office.recorder.release("two")
    await_gate(office, "three")
    office.recorder.release("three")
    office.await_end(run_id)
    expect(visitor.answer).to_have_text("Done.")
    visitor.assert_panel_is_whole(run_id)
    heard = [message["seq"] for message in select_events(visitor.received)]
    assert heard == list_event_numbers(run_id)[-len(heard) :], (
        "each event came once, also on the new socket"
    )
