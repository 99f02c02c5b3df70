"""While the preview of a requested call is computed, other requests arrive and people change
rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db.models.functions import Now

from agents.employees.models import Grant, ToolRule
from agents.gateway import requests
from agents.gateway.models import AgentKey
from agents.gateway.sessions import end_resting_run, find_or_create_session
from agents.runs.engine import judgment
from agents.runs.engine.context import RunContext
from agents.runs.engine.judgment import MAX_ROUNDS
from agents.runs.engine.requested_calls import preview_card
from agents.runs.models import Approval, CallStatus, Run, RunStatus, ToolCall
from tests.gateway.test_requests import SEARCH, UPDATE, request, update
from tests.workshop import LONG_AGO, Workshop, again, passes
from tools.contract import Level
from tools.toolbox import Condition, Otherwise, Rule


@pytest.fixture
def during_preview(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """Return the list of actions to run during the next previews: one action in each preview."""
    acts: list[Callable[[], object]] = []

    def act_and_preview(context: Any, plan: Any) -> None:
        if acts:
            acts.pop(0)()
        preview_card(context, plan)

    monkeypatch.setattr(judgment, "preview_card", act_and_preview)
    return acts


def test_identical_requests_get_one_ticket(
    workshop: Workshop, key: AgentKey, during_preview: list[Callable[[], object]]
) -> None:
    record, session = workshop.record(), find_or_create_session(key, "other")
    during_preview.append(
        lambda: request(key, UPDATE, session, record_id=str(record.pk), changes={"phone": "+49 1"})
    )
    call = update(workshop, key)
    assert ToolCall.objects.get() == call


def test_two_identical_requests_share_the_last_free_ticket(
    workshop: Workshop,
    key: AgentKey,
    during_preview: list[Callable[[], object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requests, "MAX_OPEN_TICKETS", 1)
    record, session = workshop.record(), find_or_create_session(key, "other")
    during_preview.append(
        lambda: request(key, UPDATE, session, record_id=str(record.pk), changes={"phone": "+49 1"})
    )
    assert update(workshop, key).status == CallStatus.AWAITING_APPROVAL


def test_a_call_whose_limit_another_session_uses_up_meanwhile_is_rejected(
    workshop: Workshop, key: AgentKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = Condition("", Rule.CALL_COUNT, {"most": 1, "period": "day"}, Otherwise.FORBID)
    Grant.objects.filter(employee=workshop.employee, tool=SEARCH).update(
        conditions=[limit.as_json()]
    )
    session, keep_snapshot = find_or_create_session(key, "other"), RunContext.keep_snapshot

    def be_overtaken(context: RunContext) -> str:
        monkeypatch.setattr(RunContext, "keep_snapshot", keep_snapshot)
        assert request(key, SEARCH, session, region="EU").status == CallStatus.READY
        return keep_snapshot(context)

    monkeypatch.setattr(RunContext, "keep_snapshot", be_overtaken)
    assert request(key, SEARCH, region="EU").status == CallStatus.REJECTED
    for run in Run.objects.all():
        workshop.drive(run)


def test_a_request_does_not_shorten_the_pause_after_a_failure(
    workshop: Workshop, key: AgentKey
) -> None:
    run = request(key, SEARCH).run
    Run.objects.filter(pk=run.pk).update(next_wake_at=Now() + LONG_AGO)
    for params in ({"region": "EU"}, {"limit": 0}):  # the second is rejected
        request(key, SEARCH, **params)
        assert (again(run).status, again(run).next_wake_at is None) == (RunStatus.QUEUED, False)
    workshop.cancel(run)


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_a_run_that_ends_accepts_no_more_requests(
    workshop: Workshop,
    key: AgentKey,
    during_preview: list[Callable[[], object]],
    *,
    is_cancelled: bool,
) -> None:
    run = workshop.drive(request(key, SEARCH).run)
    during_preview.append(
        partial(workshop.cancel, run)
        if is_cancelled
        else partial(end_resting_run, run.pk, is_idle=False)
    )
    assert update(workshop, key).run_id != run.pk
    assert [each.number for each in passes(run)] == [1]


def test_a_call_whose_grant_is_revoked_meanwhile_is_rejected(
    workshop: Workshop, key: AgentKey, during_preview: list[Callable[[], object]]
) -> None:
    during_preview.append(Grant.objects.filter(tool=UPDATE).delete)
    assert update(workshop, key).status == CallStatus.REJECTED
    assert not Approval.objects.exists()


def test_rules_that_keep_changing_are_read_again_a_few_times_before_the_call_is_rejected(
    workshop: Workshop, key: AgentKey, during_preview: list[Callable[[], object]]
) -> None:
    def set_level(level: Level) -> None:
        ToolRule.objects.all().delete()
        workshop.raise_for_all(UPDATE, level)

    levels = [Level.DESTRUCTIVE, Level.WRITE] * MAX_ROUNDS
    during_preview += [partial(set_level, level) for level in levels]
    assert update(workshop, key).status == CallStatus.REJECTED
    assert len(during_preview) == len(levels) - MAX_ROUNDS
