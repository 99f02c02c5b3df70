"""A proposed rule in shadow mode is compared with new decisions; its outcomes are counted, listed
and never applied."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from agents.approval_rules.models import ApprovalRule, ApproverGroup
from agents.policy import shadow
from agents.policy.models import PolicyDraft, ShadowCard, ShadowVerdict
from agents.policy.policy_drafts import ChangeKind, PolicyChange
from agents.runs.models import Approval, ApprovalStatus
from agents.worker.sweeper import sweep_once
from tests.features import feature
from tests.recorder import Recorder
from tests.standing_grants.granting import equals, grant
from tests.workshop import Workshop, asking, build_workshop, call
from tools.toolbox.approval_rules import RuleTerms

pytestmark = pytest.mark.django_db(transaction=True)

EFFECT = "probe.effect"
FOR_TWO = (PolicyChange(ChangeKind.APPROVAL_RULE, rule=RuleTerms(0, "two", needed=2)),)
MINUTES = timedelta(minutes=5)


@pytest.fixture(autouse=True)
def _recorder(recorder: Recorder) -> None:
    """Let the probes have effects."""


def start(workshop: Workshop, changes: tuple[PolicyChange, ...] = FOR_TWO) -> PolicyDraft:
    """Put these changes into shadow mode, with a start ten minutes ago."""
    policy_draft = shadow.save_policy_draft(workshop.admin, "Two", changes)
    shadow.start_shadow(workshop.admin, policy_draft.pk, 7)
    PolicyDraft.objects.filter(pk=policy_draft.pk).update(shadow_from=Now() - 2 * MINUTES)
    return PolicyDraft.objects.get(pk=policy_draft.pk)


def decide(workshop: Workshop, name: str = "a", age: timedelta = MINUTES) -> Approval:
    """Let a person approve a new card, and backdate the decision so that it is settled."""
    workshop.play(asking(call(EFFECT, name=name)))
    card = workshop.approve(workshop.card(workshop.work()))
    Approval.objects.filter(pk=card.pk).update(decided_at=Now() - age)
    return card


@feature(
    "The gate",
    "An approval rule in shadow mode is compared with new decisions and is never applied",
    "agents/policy/shadow_cards.py",
)
def test_the_sweeper_compares_new_decisions_and_applies_nothing(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide(workshop, age=3 * MINUTES)
    policy_draft = start(workshop)
    card = decide(workshop)
    grant(workshop, EFFECT, equals("name", "b"))
    workshop.play(asking(call(EFFECT, name="b")))
    workshop.work()
    monkeypatch.setattr(shadow, "SETTLED_AFTER", timedelta())
    sweep_once()
    policy_draft.refresh_from_db()
    assert policy_draft.card_counts == {"more": 1, "paused": 1}
    found = [
        (each.card_id, each.outcome, each.needs) for each in ShadowCard.objects.order_by("card_id")
    ]
    assert found[0] == (card.pk, "more", "1 of 2: an approver")
    assert found[1][1:] == ("paused", "0 of 2: an approver")
    assert (policy_draft.counts, ShadowVerdict.objects.count()) == ({}, 0), (
        "no verdict depends on the rule"
    )
    assert not ApprovalRule.objects.exists()
    workshop.play(asking(call(EFFECT, name="c")))
    again = workshop.approve(workshop.card(workshop.work()))
    assert again.status == ApprovalStatus.APPROVED, "one person still suffices"


def test_each_decision_is_compared_once(workshop: Workshop) -> None:
    policy_draft = start(workshop)
    for name in "abc":
        decide(workshop, name)
    Approval.objects.update(decided_at=Approval.objects.earliest("pk").decided_at)
    assert shadow.compare_cards(policy_draft, most=2) == 2
    assert shadow.compare_cards(policy_draft, most=2) == 0, "another sweeper was faster"
    policy_draft.refresh_from_db()
    assert shadow.compare_cards(policy_draft) == 1
    policy_draft.refresh_from_db()
    assert shadow.compare_cards(policy_draft) == 0
    assert policy_draft.card_counts == {"more": 3}


def test_recent_decisions_wait_and_decisions_after_the_end_are_not_compared(
    workshop: Workshop,
) -> None:
    policy_draft = start(workshop)
    decide(workshop, age=timedelta())
    assert shadow.compare_cards(policy_draft) == 0, "it may still be undone"
    Approval.objects.update(decided_at=Now() - MINUTES)
    PolicyDraft.objects.update(shadow_until=Now() - MINUTES - timedelta(seconds=30))
    policy_draft.refresh_from_db()
    assert shadow.compare_cards(policy_draft) == 0, "it came after the end"
    Approval.objects.update(decided_at=Now() - MINUTES - timedelta(seconds=40))
    assert shadow.compare_cards(policy_draft) == 1


def test_groups_are_read_at_the_time_of_the_comparison(workshop: Workshop) -> None:
    group = ApproverGroup.objects.create(organization=workshop.organization, name="Finance")
    rule = RuleTerms(0, "finance", group=group.as_group())
    policy_draft = start(workshop, (PolicyChange(ChangeKind.APPROVAL_RULE, rule=rule),))
    decide(workshop)
    assert shadow.compare_cards(policy_draft) == 1
    group.members.set([workshop.approver])
    decide(workshop, "b")
    policy_draft.refresh_from_db()
    shadow.compare_cards(policy_draft)
    policy_draft.refresh_from_db()
    assert policy_draft.card_counts == {"more": 1, "enough": 1, "stuck": 1}
    assert ShadowCard.objects.get().is_stuck


def test_other_organizations_are_not_compared(workshop: Workshop) -> None:
    policy_draft = start(workshop)
    other = build_workshop("globex")
    decide(other)
    assert shadow.compare_cards(policy_draft) == 0
    decide(workshop)
    assert shadow.compare_cards(policy_draft) == 1


def test_a_policy_draft_compares_decisions_if_it_has_rules_and_calls_if_it_has_other_changes(
    workshop: Workshop,
) -> None:
    stop = (PolicyChange(ChangeKind.STOP, "probe.clock"),)
    calls, cards, both = start(workshop, stop), start(workshop), start(workshop, (*stop, *FOR_TWO))
    decide(workshop)
    type(decide(workshop).tool_call).objects.update(created_at=Now() - MINUTES)
    assert (shadow.compare(calls), shadow.compare_cards(calls)) == (2, 0)
    assert (shadow.compare(cards), shadow.compare_cards(cards)) == (0, 2)
    assert (shadow.compare(both), shadow.compare_cards(both)) == (2, 2)
