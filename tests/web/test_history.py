"""The history and decided cards: who decided, when, and the result."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.runs.models import Approval, ApprovalKind, ApprovalStatus, CallStatus, ToolCall
from tests.features import feature
from tests.world import World, success

pytestmark = pytest.mark.django_db


def decide(
    world: World, status: ApprovalStatus, call_status: CallStatus, **result: Any
) -> Approval:
    """Create a card with this status, whose call has the status `call_status`."""
    now, card = timezone.now(), world.card()
    columns: dict[str, Any] = {"decided_by": world.users["approver"], "decided_at": now}
    if status == ApprovalStatus.CONSUMED:
        columns |= {"start_after": now, "consumed_at": now}
    Approval.objects.filter(pk=card.pk).update(status=status, **columns)
    ends = {"finished_at": now, "result": success(None, **result), "content": "x"} if result else {}
    if call_status in (
        CallStatus.EXECUTING,
        CallStatus.SUCCEEDED,
        CallStatus.FAILED,
        CallStatus.OUTCOME_UNKNOWN,
    ):
        ends |= {"exec_epoch": 1, "deadline_at": now, "started_at": now, "attempts": 1}
    ToolCall.objects.filter(pk=card.tool_call_id).update(status=call_status, **ends)
    return card


def history(world: World) -> str:
    return world.client("viewer").get("/approvals/?history=1").content.decode()


def reports(html: str) -> list[str]:
    """Return the results that the rows show."""
    found = re.findall(r'<p class="call-report[^>]*>.*?<span>(.*?)</span>', html, re.DOTALL)
    return [" ".join(re.sub("<[^>]+>", "", text).split()) for text in found]


ENDS: tuple[tuple[CallStatus, dict[str, Any], str], ...] = (
    (
        CallStatus.SUCCEEDED,
        {"summary": "Updated <1> record"},
        "Succeeded: Updated &lt;1&gt; record Call details",
    ),
    (
        CallStatus.FAILED,
        {"success": False, "error": {"code": "NOT_FOUND", "message": "No record 7."}},
        "Failed: No record 7. Call details",
    ),
    (CallStatus.EXECUTING, {}, "Running. Call details"),
    (CallStatus.OUTCOME_UNKNOWN, {}, "We don’t know whether this happened. Call details"),
)


@pytest.mark.parametrize(("status", "result", "says"), ENDS)
def test_a_row_reports_the_result_of_an_approved_call(
    world: World, status: CallStatus, result: dict[str, Any], says: str
) -> None:
    decide(world, ApprovalStatus.CONSUMED, status, **result)
    html = history(world)
    assert reports(html) == [says]
    assert "Approved</b> by approver" in html


@pytest.mark.parametrize(
    ("status", "call_status"),
    [
        (ApprovalStatus.DENIED, CallStatus.DENIED),
        (ApprovalStatus.EXPIRED, CallStatus.EXPIRED),
        (ApprovalStatus.CANCELLED, CallStatus.CANCELLED),
    ],
)
def test_a_row_says_if_the_call_did_not_start(
    world: World, status: ApprovalStatus, call_status: CallStatus
) -> None:
    decide(world, status, call_status, summary="never")
    assert reports(history(world)) == ["Did not start. Call details"]


def test_a_row_names_the_card_that_replaced_it(world: World) -> None:
    card = decide(world, ApprovalStatus.SUPERSEDED, CallStatus.AWAITING_APPROVAL)
    row = Approval.objects.get(pk=card.pk)
    row.pk, row.sequence, row.status, row.decided_by, row.decided_at = (
        None,
        2,
        ApprovalStatus.PENDING,
        None,
        None,
    )
    row.save()
    assert reports(history(world)) == [f"Replaced by card {row.pk}: waiting for a decision."]


def test_a_settled_outcome_shows_who_reported_it(world: World) -> None:
    card = decide(
        world,
        ApprovalStatus.CANCELLED,
        CallStatus.SUCCEEDED,
        summary="approver reported that it happened",
    )
    Approval.objects.filter(pk=card.pk).update(kind=ApprovalKind.UNKNOWN)
    assert reports(history(world)) == ["Succeeded: approver reported that it happened Call details"]


@feature(
    "Pages",
    "The history says what happened after each decision, in a bounded number of queries",
    "agents/web/cards/decided_cards.py",
)
def test_the_list_needs_a_constant_number_of_queries(world: World) -> None:
    decide(world, ApprovalStatus.CONSUMED, CallStatus.SUCCEEDED, summary="x")
    decide(world, ApprovalStatus.SUPERSEDED, CallStatus.AWAITING_APPROVAL)
    history(world)
    with CaptureQueriesContext(connection) as few:
        history(world)
    for _ in range(10):
        decide(world, ApprovalStatus.CONSUMED, CallStatus.SUCCEEDED, summary="x")
        decide(world, ApprovalStatus.SUPERSEDED, CallStatus.AWAITING_APPROVAL)
    with CaptureQueriesContext(connection) as many:
        history(world)
    # To find the marks, one query reads the content of all cards that this process has not read
    # yet.
    assert len(many) == len(few) + 1
    with CaptureQueriesContext(connection) as again:
        history(world)
    assert len(again) == len(few)


def test_the_list_refreshes_often_while_calls_are_running(world: World) -> None:
    decide(world, ApprovalStatus.CONSUMED, CallStatus.SUCCEEDED, summary="x")
    assert "data-refresh-often" not in history(world)
    decide(world, ApprovalStatus.CONSUMED, CallStatus.EXECUTING)
    assert "data-refresh-often" in history(world)


def test_a_decided_card_refreshes_until_it_is_settled(world: World) -> None:
    going = decide(world, ApprovalStatus.CONSUMED, CallStatus.EXECUTING)
    done = decide(world, ApprovalStatus.CONSUMED, CallStatus.SUCCEEDED, summary="x")
    viewer = world.client("viewer")
    assert "data-unsettled" in viewer.get(f"/approvals/{going.pk}/card/").content.decode()
    assert "data-unsettled" not in viewer.get(f"/approvals/{done.pk}/card/").content.decode()


@pytest.mark.parametrize("day", ["0001-01-01", "1899-12-31", "9999-12-31"])
@pytest.mark.parametrize("name", ["from", "until"])
def test_a_day_in_the_distant_past_or_future_is_not_an_error(
    world: World, name: str, day: str
) -> None:
    decide(world, ApprovalStatus.CONSUMED, CallStatus.SUCCEEDED, summary="Done")
    response = world.client("viewer").get(f"/approvals/?history=1&{name}={day}")
    assert response.status_code == 200
    is_outside = (name == "from") == day.startswith("9")
    assert ("call-report" in response.content.decode()) is not is_outside
