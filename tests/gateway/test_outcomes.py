"""Outcomes of redeemed asks: reported by the agent, missing, or resolved by a person."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from agents.accounts.models import AuditEntry
from agents.gateway import redemptions
from agents.gateway.models import AgentKey
from agents.gateway.redemptions import load_state
from agents.platform.refusals import Conflict, Invalid
from agents.runs.models import Approval, ApprovalKind, ApprovalStatus, RunStatus, ToolCall
from agents.worker.sweeper import sweep_once
from tests.features import feature
from tests.gateway.test_asks import approve, ask, redeem, report
from tests.workshop import Workshop, again, all_at_once


@feature(
    "Agents elsewhere",
    "A redeemed ask without a report has an unknown outcome",
    "agents/gateway/redemptions.py",
)
def test_a_missing_report_makes_the_outcome_unknown_until_a_person_settles_it(
    workshop: Workshop, key: AgentKey
) -> None:
    asked = ask(key)
    redeem(key, asked, approve(workshop, asked).sign())
    ToolCall.objects.update(deadline_at=Now() - timedelta(seconds=1))
    sweep_once()
    state = load_state(asked)
    assert (state.status, state.card.kind) == ("unknown", ApprovalKind.APPROVAL)
    assert again(asked.run).status == RunStatus.NEEDS_ATTENTION
    workshop.resolve(ToolCall.objects.get(), "succeeded")
    assert load_state(asked).status == "succeeded"
    workshop.drive(asked.run)
    with pytest.raises(Conflict):
        report(key, asked, "failed")


def test_a_report_affects_only_its_own_ask(workshop: Workshop, key: AgentKey) -> None:
    others = [ask(key), ask(key), ask(key)]
    for one in others:
        redeem(key, one, approve(workshop, one).sign())
    report(key, others[0])
    workshop.drive(others[0].run)
    assert [load_state(one).status for one in others] == ["succeeded", "redeemed", "redeemed"]
    ToolCall.objects.filter(run=others[1].run).update(deadline_at=Now() - timedelta(seconds=1))
    sweep_once()
    workshop.resolve(ToolCall.objects.get(run=others[1].run), "not_done")
    with pytest.raises(Conflict):
        report(key, others[1])
    others[2].refresh_from_db()
    assert others[2].reported_at is None
    assert report(key, others[2]).status == "succeeded"
    workshop.drive(others[2].run)


def test_a_late_report_settles_an_unknown_outcome(workshop: Workshop, key: AgentKey) -> None:
    asked = ask(key)
    redeem(key, asked, approve(workshop, asked).sign())
    ToolCall.objects.update(deadline_at=Now() - timedelta(seconds=1))
    sweep_once()
    assert report(key, asked).status == "succeeded"
    assert not Approval.objects.filter(status=ApprovalStatus.PENDING).exists()
    workshop.drive(asked.run)


def test_repeating_a_report_changes_nothing(workshop: Workshop, key: AgentKey) -> None:
    asked = ask(key)
    redeem(key, asked, approve(workshop, asked).sign())
    report(key, asked)
    assert report(key, asked).status == "succeeded"
    with pytest.raises(Conflict):
        report(key, asked, "failed")
    workshop.drive(asked.run)


@feature(
    "Agents elsewhere",
    "A report that contradicts a person's word opens a card",
    "agents/gateway/redemptions.py",
)
def test_a_report_is_refused_and_recorded_after_a_person_has_resolved_the_outcome(
    workshop: Workshop, key: AgentKey
) -> None:
    asked = ask(key)
    redeem(key, asked, approve(workshop, asked).sign())
    ToolCall.objects.update(deadline_at=Now() - timedelta(seconds=1))
    sweep_once()
    workshop.resolve(ToolCall.objects.get(), "not_done")
    with pytest.raises(Conflict):
        report(key, asked)
    with pytest.raises(Conflict):
        report(key, asked)
    (entry,) = AuditEntry.objects.filter(action="outcome_reported_late")
    assert entry.payload["outcome"] == "succeeded"
    card = Approval.objects.latest("pk")
    assert (card.status, card.sentence.startswith("This happened after all")) == (
        ApprovalStatus.PENDING,
        True,
    )
    assert "but the agent says it happened" in card.why


def test_six_identical_simultaneous_reports_are_not_recorded_as_late(
    workshop: Workshop, key: AgentKey
) -> None:
    asked = ask(key)
    redeem(key, asked, approve(workshop, asked).sign())
    responses: list[str] = []
    all_at_once([lambda: responses.append(report(key, asked).status)] * 6)
    assert responses == ["succeeded"] * 6
    assert not AuditEntry.objects.filter(action="outcome_reported_late").exists()
    workshop.drive(asked.run)


def test_a_missing_report_makes_the_outcome_unknown_only_after_the_deadline(
    workshop: Workshop, key: AgentKey
) -> None:
    silent, told = ask(key), ask(key)
    for one in (silent, told):
        redeem(key, one, approve(workshop, one).sign())
    first, second = ToolCall.objects.order_by("pk")
    assert not redemptions.note_silence(first.pk)
    report(key, told)
    ToolCall.objects.update(deadline_at=Now() - timedelta(seconds=1))
    assert not redemptions.note_silence(second.pk)
    assert redemptions.note_silence(first.pk)
    assert [load_state(one).status for one in (silent, told)] == ["unknown", "succeeded"]
    workshop.drive(told.run)


@pytest.mark.parametrize(
    ("field", "value"), [("outcome", "maybe"), ("summary", "x" * 2_001), ("summary", "\0")]
)
def test_an_invalid_field_of_a_report_is_reported(
    workshop: Workshop, key: AgentKey, field: str, value: str
) -> None:
    asked = ask(key)
    redeem(key, asked, approve(workshop, asked).sign())
    with pytest.raises(Invalid) as refusal:
        report(key, asked, **{field: value})
    assert refusal.value.extra["field"] == field
    assert report(key, asked, summary="x" * 2_000).status == "succeeded"
    workshop.drive(asked.run)


def test_a_report_before_the_redemption_is_refused(workshop: Workshop, key: AgentKey) -> None:
    asked = ask(key)
    approve(workshop, asked)
    with pytest.raises(Conflict):
        report(key, asked)


def test_cancelling_the_run_of_a_redeemed_ask_makes_its_outcome_unknown(
    workshop: Workshop, key: AgentKey
) -> None:
    asked = ask(key)
    redeem(key, asked, approve(workshop, asked).sign())
    workshop.cancel(asked.run)
    assert load_state(asked).status == "unknown"
