"""A browser explains a bulk decision before, during and after it, and when it is undone."""

from __future__ import annotations

import re

import pytest
from django.db.models import F
from playwright.sync_api import Locator, Request, Route, expect

from agents.runs.models import Approval, ApprovalStatus
from tests.awaiting import await_that
from tests.journeys.office import Office
from tests.journeys.test_bulk_decisions import await_group, confirm, summary
from tests.journeys.test_the_inbox_by_keyboard import (
    get_status,
    in_the_inbox,
    press,
    row,
    rows,
    toast,
)
from tests.journeys.visitor import Visit, Visitor
from tests.workshop import asking, call

pytestmark = pytest.mark.once

DECIDE = re.compile("/api/approvals/decide")
STATE = re.compile(r"/api/approvals/bulks/[\w-]+$")


def progress(visitor: Visitor) -> Locator:
    return visitor.page.locator(".toast[data-progress]")


def take(visitor: Visitor, held: list[Route], count: int) -> None:
    """Wait until this many requests are held; poll the browser meanwhile, so that it can pass them
    on."""
    await_that(
        lambda: visitor.page.evaluate("() => true") and len(held) >= count,
        f"{count} requests are held",
    )


def test_the_summary_lists_shared_values_differences_and_odd_cards(
    office: Office, visit: Visit
) -> None:
    records = [office.workshop.record(name=f"Company {number}") for number in range(5)]
    domains = ["acme.example"] * 4 + ["acrne.example"]
    changes = [
        {"status": "inactive", "email": f"{number}@{domain}"}
        for number, domain in enumerate(domains)
    ]
    calls = [
        call("data.updateRecord", record_id=str(record.pk), changes=each)
        for record, each in zip(records, changes, strict=True)
    ]
    office.workshop.play(asking(*calls))
    *_, odd = office.await_cards(office.submit().pk, len(calls))
    visitor = in_the_inbox(visit)
    expect(rows(visitor).first).to_have_attribute("data-row", str(odd.pk))
    press(visitor, "x j Shift+X Shift+D")
    expect(summary(visitor)).to_contain_text("Deny 5 cards?")
    expect(summary(visitor)).to_contain_text("The same for all 5: status inactive")
    expect(summary(visitor)).to_contain_text("email: 4 of 5 acme.example; 1 acrne.example")
    named = summary(visitor).locator("[data-bulk-odd]")
    expect(named).to_be_visible()
    expect(named).to_contain_text("4@acrne.example")
    expect(named).to_contain_text("different domain in “email”")
    sent = list[Request]()
    visitor.page.on(
        "request", lambda request: sent.append(request) if DECIDE.search(request.url) else None
    )
    press(visitor, "Escape")
    expect(summary(visitor)).to_be_hidden()
    press(visitor, "Shift+D")
    expect(summary(visitor)).to_contain_text("Deny 5 cards?")
    confirm(visitor)
    expect(toast(visitor).last).to_contain_text("Denied: 5 cards.")
    assert len(sent) == 1, "leaving the summary sends nothing"


@pytest.mark.parametrize(
    ("key", "doing", "done"), [("D", "Denying", "Denied"), ("A", "Approving", "Approved")]
)
def test_a_long_bulk_decision_shows_its_progress(
    office: Office, visit: Visit, key: str, doing: str, done: str
) -> None:
    for _ in range(3):  # a run has at most 20 open cards, and a request at most 50 decisions
        await_group(office, [f"n{number}@acme.example" for number in range(17)])
    visitor, held = in_the_inbox(visit), list[Route]()
    visitor.page.route(DECIDE, lambda route: held.append(route))  # noqa: PLW0108 - Playwright inspects it
    press(visitor, f"Shift+X Shift+{key}")
    confirm(visitor)
    expect(progress(visitor)).to_contain_text(f"{doing} 51 cards: 0 done.")
    take(visitor, held, 1)
    held[0].continue_()
    expect(progress(visitor)).to_contain_text(f"{doing} 51 cards: 50 done.")
    take(visitor, held, 2)
    held[1].continue_()
    expect(toast(visitor).last).to_contain_text(f"{done}: 51 cards.")
    expect(progress(visitor)).to_have_count(0)
    if done == "Approved":
        press(visitor, "u")
        expect(toast(visitor).last).to_contain_text(
            re.compile(r"Undone: .*\d+ (is|are) waiting again\.")
        )


def test_an_undo_responds_immediately_updates_the_cards_and_counts_the_started_calls(
    office: Office, visit: Visit
) -> None:
    first, *others = await_group(office, [f"{name}@acme.example" for name in "abcd"])
    visitor, held = in_the_inbox(visit), list[Route]()
    visitor.page.route(STATE, lambda route: held.append(route), times=1)  # noqa: PLW0108 - Playwright inspects it
    press(visitor, "Shift+X Shift+A")
    confirm(visitor)
    expect(toast(visitor)).to_contain_text("Approved: 4 cards.")
    Approval.objects.filter(pk=first.pk).update(start_after=F("requested_at"))
    await_that(lambda: get_status(first) == ApprovalStatus.CONSUMED, "the first call has started")
    press(visitor, "u")
    expect(progress(visitor)).to_contain_text("Undone: 4 cards. No further calls will start.")
    take(visitor, held, 1)
    await_that(
        lambda: {get_status(card) for card in others} == {ApprovalStatus.SUPERSEDED},
        "the cards are renewed",
    )
    held[0].continue_()
    expect(toast(visitor).last).to_contain_text(
        "Undone: 1 had already started. 3 are waiting again."
    )
    expect(progress(visitor)).to_have_count(0)
    expect(row(visitor, first)).to_have_count(0)
    expect(rows(visitor)).to_have_count(3)
