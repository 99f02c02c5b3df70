"""Limits on a grant in a run: a call that violates a condition needs approval or is refused, and a
call at a raised level always needs approval."""

from __future__ import annotations

import pytest

from agents.employees.models import Grant
from agents.runs.engine.context import load_context
from agents.runs.models import CallStatus, RunStatus
from tests.workshop import Workshop, asking, call, calls
from tools.contract import Level
from tools.toolbox import Condition, Otherwise, Rule

pytestmark = pytest.mark.django_db(transaction=True)

SEARCH = "data.searchRecords"


def bind(workshop: Workshop, *conditions: Condition, level: str = "") -> None:
    grants = Grant.objects.filter(employee=workshop.employee, tool=SEARCH)
    assert grants.update(conditions=[each.as_json() for each in conditions], level=level) == 1


def test_a_read_within_its_limits_runs_without_approval(workshop: Workshop) -> None:
    bind(workshop, Condition("limit", Rule.MAXIMUM, 50))
    workshop.play(asking(call(SEARCH, limit=50)))
    assert workshop.work().status == RunStatus.SUCCEEDED


def test_a_call_that_violates_a_condition_needs_approval_and_then_runs(workshop: Workshop) -> None:
    bind(workshop, Condition("limit", Rule.MAXIMUM, 50))
    workshop.play(asking(call(SEARCH, limit=51)))
    run = workshop.work()
    card = workshop.card(run)
    assert card.why == "limit is 51, but must be at most 50"
    workshop.approve(card)
    assert workshop.drive(run).status == RunStatus.SUCCEEDED
    assert [one.status for one in calls(run)] == [CallStatus.SUCCEEDED]


def test_a_forbidding_condition_refuses_the_call_and_gives_the_model_the_reason(
    workshop: Workshop,
) -> None:
    bind(workshop, Condition("region", Rule.ONE_OF, ["EU"], Otherwise.FORBID))
    workshop.play(asking(call(SEARCH)))
    (one,) = calls(workshop.work())
    assert one.status == CallStatus.REJECTED
    assert "region is missing" in one.content


def test_a_read_whose_grant_raises_its_level_needs_approval(workshop: Workshop) -> None:
    bind(workshop, level="destructive")
    workshop.play(asking(call(SEARCH)))
    card = workshop.card(workshop.work())
    assert card.level == "destructive"
    assert load_context(card.run_id).build_tool_context(card.tool_call).level is Level.DESTRUCTIVE
    assert "raised the level from read" in card.why


def test_a_limit_added_while_a_card_is_open_rejects_the_call_at_its_start(
    workshop: Workshop,
) -> None:
    bind(workshop, level="write")
    workshop.play(asking(call(SEARCH, limit=51)))
    run = workshop.work()
    workshop.approve(workshop.card(run))
    bind(workshop, Condition("limit", Rule.MAXIMUM, 50, Otherwise.FORBID), level="write")
    workshop.drive(run)
    assert [one.status for one in calls(run)] == [CallStatus.REJECTED]


def test_a_grant_with_an_invalid_condition_does_not_allow_any_call(workshop: Workshop) -> None:
    Grant.objects.filter(employee=workshop.employee, tool=SEARCH).update(
        conditions=[{"param": "limit"}]
    )
    workshop.play(asking(call(SEARCH)))
    run = workshop.submit()
    with pytest.raises(ValueError, match="a condition needs"):
        workshop.drive(run)
    assert calls(run) == []
