"""The page of the REST API: whoever presses "Execute" gets something of their own, and not what is not there."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from agents.models import Employee
from tests.engine.workshop import asking, call, calls
from tests.journeys.office import Office
from tests.journeys.visitor import Visitor

pytestmark = pytest.mark.once

EXAMPLE = "Count what there is."


def executed(page: Page, name: str) -> tuple[int, Any]:
    """The status and the body that the operation answers, sent as the page has filled it in."""
    block = page.locator(f".opblock[id$='-{name}']")
    block.locator(".opblock-summary-control").click()
    block.get_by_role("button", name="Try it out").click()
    with page.expect_response(lambda answer: "/api/" in answer.url) as answered:
        block.get_by_role("button", name="Execute").click()
    expect(block.locator(".live-responses-table")).to_be_visible()
    return answered.value.status, json.loads(answered.value.body())


def test_the_examples_are_those_of_whoever_looks(office: Office, visit: Callable[..., Visitor]) -> None:
    workshop = office.workshop
    workshop.play(asking(call("utility.calculate", operation="add", a=1, b=2)), asking(call("probe.effect", name="a")))
    Employee.objects.filter(pk=workshop.employee.pk).update(example_tasks=[EXAMPLE])
    run = office.submit()
    office.await_cards(run.pk)
    page = visit("operator").page
    page.goto("/api/docs")
    expect(page.locator(".opblock").last).to_be_visible()
    employee_id = str(workshop.employee.pk)
    for name, wanted in (
        ("show_employee", employee_id),
        ("show_run", str(run.pk)),
        ("show_tool_call", str(calls(run)[0].pk)),
        ("show_approval", str(workshop.card(run).pk)),
    ):
        status, body = executed(page, name)
        assert (status, body["id"]) == (200, wanted), name
    status, started = executed(page, "start_run")
    assert (status, started["employee_id"], started["task"]) == (201, employee_id, EXAMPLE)
    for run_id in (run.pk, int(started["id"])):
        (card,) = office.await_cards(run_id)
        workshop.deny(card)
        office.await_end(run_id)


def test_without_a_login_nothing_is_invented(office: Office, visit: Callable[..., Visitor]) -> None:
    page = visit().page
    page.goto("/api/docs")
    block = page.locator(".opblock[id$='-show_run']")
    block.locator(".opblock-summary-control").click()
    expect(block.get_by_text("lists them", exact=False)).to_be_visible()
    block.get_by_role("button", name="Try it out").click()
    expect(block.locator("tr[data-param-name=run_id] input")).to_have_value("")
