"""The REST API page: operations that only read have example ids; operations that change something
do not."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from agents.runs.models import Approval, ApprovalStatus, Run
from tests.journeys.office import Office
from tests.journeys.visitor import Visit
from tests.workshop import asking, call

pytestmark = pytest.mark.once


def open_form(page: Page, name: str) -> Locator:
    """Open the operation's form."""
    block = page.locator(f".opblock[id$='-{name}']")
    block.locator(".opblock-summary-control").click()
    block.get_by_role("button", name="Try it out").click()
    return block


def execute(page: Page, name: str) -> tuple[int, Any]:
    """Send the operation with the example values; return the status and body of the response."""
    block = open_form(page, name)
    with page.expect_response(lambda answer: "/api/" in answer.url) as answered:
        block.get_by_role("button", name="Execute").click()
    expect(block.locator(".live-responses-table")).to_be_visible()
    return answered.value.status, json.loads(answered.value.body())


def start_waiting_run(office: Office) -> tuple[Run, Approval]:
    workshop = office.workshop
    workshop.play(
        asking(call("utility.calculate", operation="add", a=1, b=2)),
        asking(call("probe.effect", name="a")),
    )
    run = office.submit()
    (card,) = office.await_cards(run.pk)
    return run, card


def test_example_ids_belong_to_rows_that_the_reader_can_see(office: Office, visit: Visit) -> None:
    run, card = start_waiting_run(office)
    page = visit("operator").page
    asked: list[str] = []
    page.on(
        "request", lambda request: asked.append(request.url) if "/api/" in request.url else None
    )
    page.goto("/api/docs")
    expect(page.locator(".opblock").last).to_be_visible()
    for name, wanted in (
        ("show_employee", office.workshop.employee.pk),
        ("show_run", run.pk),
        ("show_tool_call", card.tool_call_id),
        ("show_approval", card.pk),
    ):
        status, body = execute(page, name)
        assert (status, body["id"]) == (200, str(wanted)), name
    assert len([url for url in asked if "limit=1" in url or "openapi" in url]) == 4
    office.workshop.deny(card)
    office.await_end(run.pk)


CHANGES = {
    "cancel_run": "run_id",
    "approve": "approval_id",
    "deny": "approval_id",
    "resolve_tool_call": "call_id",
}


def test_operations_that_change_something_do_not_have_example_ids(
    office: Office, visit: Visit
) -> None:
    run, card = start_waiting_run(office)
    page = visit("admin").page
    page.goto("/api/docs")
    reading = open_form(page, "show_run")
    expect(reading.locator("tr[data-param-name=run_id] input")).to_have_value(str(run.pk))
    for name, field in CHANGES.items():
        block = open_form(page, name)
        expect(block.locator(f"tr[data-param-name={field}] input")).to_have_value("")
        block.get_by_role("button", name="Execute").click()
        expect(block.locator(f"tr[data-param-name={field}] input")).to_have_class(
            re.compile("invalid")
        )
    assert office.workshop.card(run).status == ApprovalStatus.PENDING
    bodies = open_form(page, "decide_many"), open_form(page, "start_run")
    for body in bodies:
        expect(body.locator("textarea").first).not_to_have_value(
            re.compile(rf'_id": "({card.pk}|{run.employee_id})"')
        )
    office.workshop.deny(card)
    office.await_end(run.pk)


def test_a_missing_description_is_reported_on_the_page(visit: Visit) -> None:
    page = visit("operator").page
    page.route("**/api/openapi.json", lambda route: route.abort())
    page.goto("/api/docs")
    expect(page.locator("#swagger-ui")).to_contain_text("Failed to load API definition")


def test_operations_are_shown_without_example_ids_if_the_ids_cannot_be_loaded(visit: Visit) -> None:
    page = visit("operator").page
    page.route("**/api/runs?*", lambda route: route.abort())
    page.goto("/api/docs")
    expect(open_form(page, "show_run").locator("tr[data-param-name=run_id] input")).to_have_value(
        ""
    )


def test_operations_have_no_example_ids_without_a_login(office: Office, visit: Visit) -> None:
    page = visit().page
    page.goto("/api/docs")
    block = open_form(page, "show_run")
    expect(block.get_by_text("lists them", exact=False)).to_be_visible()
    expect(block.locator("tr[data-param-name=run_id] input")).to_have_value("")
