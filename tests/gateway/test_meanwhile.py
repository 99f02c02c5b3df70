"""The preview of a requested call takes time, in which other requests come and people change rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from agents.approvals.models import Approval
from agents.employees.models import Grant, ToolRule
from agents.gateway import requests
from agents.gateway.models import AgentKey
from agents.gateway.sessions import find_or_create_session
from agents.runs.engine.requested_calls import MAX_ROUNDS, preview_card
from agents.runs.models import CallStatus, ToolCall
from tests.gateway.test_requests import UPDATE, request, update
from tests.workshop import Workshop
from tools.contract import Level


@pytest.fixture
def during_preview(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """Return the acts that happen during the next previews, one in each."""
    acts: list[Callable[[], object]] = []

    def act_and_preview(context: Any, plan: Any) -> None:
        if acts:
            acts.pop(0)()
        preview_card(context, plan)

    monkeypatch.setattr(requests, "preview_card", act_and_preview)
    return acts


def test_an_equal_request_gets_one_ticket(
    workshop: Workshop, key: AgentKey, during_preview: list[Callable[[], object]]
) -> None:
    record, session = workshop.record(), find_or_create_session(key, "other")
    during_preview.append(lambda: request(key, UPDATE, session, record_id=str(record.pk), changes={"phone": "+49 1"}))
    call = update(workshop, key)
    assert ToolCall.objects.get() == call


def test_a_grant_that_was_taken_away_counts(
    workshop: Workshop, key: AgentKey, during_preview: list[Callable[[], object]]
) -> None:
    during_preview.append(Grant.objects.filter(tool=UPDATE).delete)
    assert update(workshop, key).status == CallStatus.REJECTED
    assert not Approval.objects.exists()


def test_rules_that_keep_changing_are_followed_only_so_often(
    workshop: Workshop, key: AgentKey, during_preview: list[Callable[[], object]]
) -> None:
    def set_level(level: Level) -> None:
        ToolRule.objects.all().delete()
        workshop.raise_for_all(UPDATE, level)

    levels = [Level.DESTRUCTIVE, Level.WRITE] * MAX_ROUNDS
    during_preview += [partial(set_level, level) for level in levels]
    assert update(workshop, key).status == CallStatus.REJECTED
    assert len(during_preview) == len(levels) - MAX_ROUNDS
