"""A policy draft in shadow mode judges new calls later; its verdicts are counted and listed, and
never applied."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound
from agents.policy import shadow
from agents.policy.models import PolicyDraft, ShadowVerdict
from agents.policy.policy_drafts import ChangeKind, PolicyChange
from agents.runs.models import CallStatus, RunStatus, ToolCall
from agents.worker.sweeper import sweep_once
from tests.features import feature
from tests.workshop import Workshop, asking, build_workshop, call

pytestmark = pytest.mark.django_db(transaction=True)

CLOCK = "probe.clock"
STOP = (PolicyChange(ChangeKind.STOP, CLOCK),)
MINUTES = timedelta(minutes=5)


def work(workshop: Workshop, age: timedelta = MINUTES) -> ToolCall:
    """Let a call of the clock run, and backdate it so that it is settled."""
    workshop.play(asking(call(CLOCK)))
    run = workshop.work()
    ToolCall.objects.filter(run=run).update(created_at=Now() - age)
    return ToolCall.objects.get(run=run)


def start(workshop: Workshop, days: int = 7) -> PolicyDraft:
    policy_draft = shadow.save_policy_draft(workshop.admin, "No clock", STOP)
    shadow.start_shadow(workshop.admin, policy_draft.pk, days)
    return PolicyDraft.objects.get(pk=policy_draft.pk)


@feature(
    "The gate",
    "A draft in shadow mode judges new calls and is never applied",
    "agents/policy/shadow.py",
)
def test_the_sweeper_compares_new_calls_and_applies_nothing(workshop: Workshop) -> None:
    work(workshop)
    policy_draft = start(workshop)
    new = work(workshop)
    sweep_once()
    policy_draft.refresh_from_db()
    assert policy_draft.counts == {"auto forbidden": 1}
    verdict = ShadowVerdict.objects.get()
    assert (verdict.call_id, verdict.before, verdict.after) == (new.pk, "auto", "forbidden")
    assert "stopped by this policy draft" in verdict.reason
    assert new.status == CallStatus.SUCCEEDED
    assert work(workshop).run.status == RunStatus.SUCCEEDED


def test_each_call_is_compared_once(workshop: Workshop) -> None:
    policy_draft = start(workshop)
    for _ in range(3):
        work(workshop)
    assert shadow.compare(policy_draft, most=2) == 2
    assert shadow.compare(policy_draft) == 0, "another sweeper was faster"
    policy_draft.refresh_from_db()
    assert shadow.compare(policy_draft) == 1
    policy_draft.refresh_from_db()
    assert shadow.compare(policy_draft) == 0
    assert policy_draft.counts == {"auto forbidden": 3}
    assert ShadowVerdict.objects.count() == 3


def test_recent_calls_are_compared_only_once_they_are_settled(workshop: Workshop) -> None:
    policy_draft = start(workshop)
    work(workshop, timedelta())
    work(workshop)
    assert shadow.compare(policy_draft) == 0, "the younger one has the lower id"
    ToolCall.objects.update(created_at=Now() - MINUTES)
    assert shadow.compare(policy_draft) == 2


def test_calls_after_the_end_do_not_count(workshop: Workshop) -> None:
    policy_draft = start(workshop)
    work(workshop)
    PolicyDraft.objects.update(shadow_from=Now() - 3 * MINUTES, shadow_until=Now() - 2 * MINUTES)
    policy_draft.refresh_from_db()
    assert shadow.compare(policy_draft) == 0
    ToolCall.objects.update(created_at=Now() - 3 * MINUTES)
    assert shadow.compare(policy_draft) == 1


def test_other_organizations_are_not_compared(workshop: Workshop) -> None:
    policy_draft = start(workshop)
    other = build_workshop("globex")
    work(other)
    assert shadow.compare(policy_draft) == 0
    for act in (
        lambda: shadow.find_policy_draft(other.admin, policy_draft.pk),
        lambda: shadow.start_shadow(other.admin, policy_draft.pk, 1),
        lambda: shadow.stop_shadow(other.admin, policy_draft.pk),
        lambda: shadow.delete_policy_draft(other.admin, policy_draft.pk),
    ):
        with pytest.raises(NotFound):
            act()
    assert shadow.list_policy_drafts(other.admin) == []


def test_only_admins_can_save_and_delete_policy_drafts(workshop: Workshop) -> None:
    with pytest.raises(Forbidden):
        shadow.save_policy_draft(workshop.approver, "Mine", STOP)
    policy_draft = start(workshop)
    with pytest.raises(Forbidden):
        shadow.delete_policy_draft(workshop.operator, policy_draft.pk)


def test_shadow_mode_lasts_1_to_30_days_and_runs_once_for_each_policy_draft(
    workshop: Workshop,
) -> None:
    policy_draft = shadow.save_policy_draft(workshop.admin, "No clock", STOP)
    for days in (0, 31):
        with pytest.raises(Invalid, match="1 to 30 days"):
            shadow.start_shadow(workshop.admin, policy_draft.pk, days)
    with pytest.raises(Conflict, match="not in shadow mode"):
        shadow.stop_shadow(workshop.admin, policy_draft.pk)
    shadow.start_shadow(workshop.admin, policy_draft.pk, 30)
    shadow.stop_shadow(workshop.admin, policy_draft.pk)
    with pytest.raises(Conflict, match="has already run in shadow mode"):
        shadow.start_shadow(workshop.admin, policy_draft.pk, 1)
    shadow.delete_policy_draft(workshop.admin, policy_draft.pk)
    assert not PolicyDraft.objects.exists()


def test_policy_drafts_need_a_name_and_a_change_and_are_limited_in_number(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Invalid, match="name"):
        shadow.save_policy_draft(workshop.admin, " ", STOP)
    with pytest.raises(Invalid, match="Choose a change"):
        shadow.save_policy_draft(workshop.admin, "Nothing", ())
    monkeypatch.setattr(shadow, "MAX_SHADOWS", 1)
    start(workshop)
    with pytest.raises(Conflict, match="Stop one first"):
        start(workshop)
    monkeypatch.setattr(shadow, "MAX_POLICY_DRAFTS", 2)
    with pytest.raises(Conflict, match="Delete one first"):
        shadow.save_policy_draft(workshop.admin, "Third", STOP)
