"""Cards, and policy drafts of approval rules that are simulated over them."""

from __future__ import annotations

from typing import Any

from agents.accounts.models import Membership, Organization
from agents.approval_rules.models import ApprovalRule
from agents.policy.policy_drafts import ChangeKind, PolicyChange
from agents.policy.rule_simulation import RuleReport, simulate_rules
from agents.runs.models import Approval
from tests.workshop import Workshop, asking, call
from tools.toolbox.approval_rules import RuleTerms

EFFECT = "probe.effect"


def ask(workshop: Workshop, name: str = "a") -> Approval:
    """Let the employee request a call, and return its waiting card."""
    workshop.play(asking(call(EFFECT, name=name)))
    return workshop.card(workshop.work())


def approve(workshop: Workshop, *people: Membership, name: str = "a") -> Approval:
    """Let these people approve a new card, and let its call start."""
    card = ask(workshop, name)
    for person in people:
        workshop.approve(card, by=person)
    workshop.drive(card.run)
    return Approval.objects.get(pk=card.pk)


def propose(**terms: Any) -> PolicyChange:
    return PolicyChange(
        ChangeKind.APPROVAL_RULE, rule=RuleTerms(**{"id": 0, "name": "draft", **terms})
    )


def remove(rule: ApprovalRule) -> PolicyChange:
    return PolicyChange(ChangeKind.NO_APPROVAL_RULE, rule=RuleTerms(rule.pk, rule.name))


def run_simulation(workshop: Workshop, *changes: PolicyChange, limit: int = 1_000) -> RuleReport:
    return simulate_rules(Organization.objects.get(pk=workshop.organization.pk), changes, limit)
