"""The main job in a browser: a task is assigned, one change is approved, another is denied, and
nothing else happens."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from agents.runs.models import Approval, ApprovalStatus, CallStatus, RunStatus, ToolCall
from tests.gadget_site.commands.demo_world import build_demo
from tests.gadget_site.commands.test_demo_plays import INACTIVE
from tests.journeys.api_client import select_events
from tests.journeys.office import Office, list_event_numbers, load_run
from tests.journeys.visitor import Visit, Visitor
from tools.office.records.models import Record

REASON = "They called us <b>yesterday</b>"


def load_versions() -> dict[int, int]:
    return dict(Record.objects.values_list("pk", "version"))


@pytest.mark.every_commit
def test_a_newcomer_approves_one_change_and_denies_another(office: Office, visit: Visit) -> None:
    build_demo()
    before = load_versions()
    worker = office.installation.process("worker1")
    visitor = visit()
    visitor.log_in("approver", "gadget-demo")

    worker.pause()
    run_id = start_example(visitor, "Dana")
    worker.resume()
    expect(visitor.open_cards).to_have_count(2)
    visitor.assert_panel_is_whole(run_id)
    assert_parallel_calls_started_before_the_last_ended(visitor, run_id)

    approved, denied = office.workshop.cards(load_run(run_id))
    for card in (approved, denied):
        record = load_record(card)
        expect(visitor.card(card.pk).locator(".sentence")).to_contain_text(record.name)
        expect(visitor.card(card.pk).locator(".diff")).to_contain_text("inactive")
    visitor.approve(visitor.card(approved.pk))
    expect(visitor.card(approved.pk)).to_contain_text("Approved by approver")
    expect(visitor.card(approved.pk).get_by_role("button", name="Undo")).to_be_visible()
    expect(visitor.card(approved.pk).locator("[data-countdown]")).to_have_text(
        re.compile("^[0-5]$")
    )
    visitor.deny(visitor.card(denied.pk), REASON)
    expect(visitor.card(denied.pk)).to_contain_text("Denied by approver")
    expect(visitor.card(denied.pk)).to_contain_text(REASON)

    expect(visitor.answer).to_be_visible()
    expect(visitor.answer).to_contain_text(REASON)
    changed = load_record(approved)
    expect(visitor.answer).to_contain_text(
        f"{changed.name} (record {changed.pk}): the status is now inactive"
    )
    expect(visitor.page.locator("[data-badge]")).to_have_text("Partly denied")
    visitor.assert_panel_is_whole(run_id)

    changed = load_record(approved)
    assert (changed.status, load_record(denied).status) == ("inactive", "active")
    assert load_versions() == {**before, changed.pk: before[changed.pk] + 1}
    assert load_run(run_id).status == RunStatus.SUCCEEDED
    assert started_after_its_grace(approved)
    assert load_statuses(approved) == (ApprovalStatus.CONSUMED, CallStatus.SUCCEEDED, 1)
    assert load_statuses(denied) == (ApprovalStatus.DENIED, CallStatus.DENIED, 0)


def start_example(visitor: Visitor, employee: str) -> int:
    """Start the employee's first example task; return the run's id."""
    visitor.choose(employee)
    visitor.page.locator("[data-example]:visible").first.click()
    assert visitor.page.locator("textarea[name=task]").input_value() == INACTIVE
    visitor.page.get_by_role("button", name="Start", exact=True).click()
    return visitor.run_id()


def assert_parallel_calls_started_before_the_last_ended(visitor: Visitor, run_id: int) -> None:
    """Check the order of events as the page received them."""
    heard = select_events(visitor.received)
    assert [message["seq"] for message in heard] == list_event_numbers(run_id)[1:]
    first = [str(call.pk) for call in ToolCall.objects.filter(run_id=run_id, pass_number=1)]
    assert len(first) == 3
    places: dict[str, list[int]] = {"tool_start": [], "tool_result": []}
    for place, message in enumerate(heard):
        if message["type"] in places and message["payload"]["call_id"] in first:
            places[message["type"]].append(place)
    assert len(places["tool_start"]) == len(places["tool_result"]) == 3
    assert max(places["tool_start"]) < max(places["tool_result"])


def load_record(card: Approval) -> Record:
    return Record.objects.get(pk=int(card.tool_call.params["record_id"]))


def load_statuses(card: Approval) -> tuple[str, str, int]:
    now = Approval.objects.select_related("tool_call").get(pk=card.pk)
    return now.status, now.tool_call.status, now.tool_call.attempts


def started_after_its_grace(card: Approval) -> bool:
    now = Approval.objects.select_related("tool_call").get(pk=card.pk)
    assert now.start_after is not None
    assert now.decided_at is not None
    assert now.tool_call.started_at is not None
    return now.tool_call.started_at >= now.start_after > now.decided_at


@pytest.mark.once
def test_calls_of_one_pass_run_in_parallel(office: Office, visit: Visit) -> None:
    gates = ("left", "middle", "right")
    office.workshop.play(
        {"calls": [{"tool": "probe.gate", "params": {"name": gate}} for gate in gates]}
    )
    for gate in gates:
        office.recorder.hold(gate)
    visitor = visit("operator")
    run_id = visitor.start("Dana", "Pass the gates")
    running = visitor.page.locator(".call .spinner")
    expect(running).to_have_count(3)
    office.recorder.release("left")
    office.recorder.release("right")
    expect(running).to_have_count(1)
    expect(visitor.page.locator(".call.status-succeeded")).to_have_count(2)
    expect(visitor.page.locator(".call:has(.spinner)")).to_contain_text("middle")
    office.recorder.release("middle")
    expect(visitor.answer).to_have_text("Done.")
    visitor.assert_panel_is_whole(run_id)
