"""Find the calls that the makers of standing grants could decide alone under the current approval
rules."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from agents.accounts.models import Organization
from agents.approval_rules.loading import load_rules, load_voters
from agents.approvals.requesters import find_requesters
from agents.runs.models import Approval
from agents.standing_grants.models import StandingGrant
from tools.toolbox.approval_rules import RuledCard, RuleTerms, Voter, may_decide
from tools.toolbox.rulings import Ruling


class PreapprovedCall(NamedTuple):
    """A call that a standing grant would approve.

    Attributes:
        ruled: the call's card in the form that approval rules compare.
        card: the call's card, or an unsaved card with the run and the calling call, needed to find
            the requesters.
    """

    ruled: RuledCard
    card: Approval


@dataclass(frozen=True)
class MakerRights:
    """The rights of makers to decide some calls alone; if there are no rules, every maker may
    decide every call."""

    calls: Sequence[RuledCard]
    rules: Collection[RuleTerms] = ()
    voters: dict[int, Voter] = field(default_factory=dict)

    def may_preapprove(self, grant: StandingGrant, number: int) -> bool:
        """Return True if the maker of this standing grant could decide the call with this number
        alone."""
        if not self.rules:
            return True
        maker = self.voters.get(grant.made_by_id)
        return maker is not None and may_decide(maker, self.calls[number], [], self.rules).completes

    def find_ruling(self, grant: StandingGrant, number: int) -> Ruling | None:
        """Return the ruling to record on a call approved by this standing grant; None if no rule
        matches the call."""
        matching = [rule for rule in self.rules if rule.matches(self.calls[number])]
        maker = self.voters.get(grant.made_by_id)
        return Ruling.of(maker, self.calls[number], (), matching) if matching and maker else None


def find_rights(
    organization: Organization,
    grants: Collection[StandingGrant],
    calls: Sequence[PreapprovedCall],
    *,
    has_rules: bool,
) -> MakerRights:
    """Find the rights of these standing grants' makers to decide these calls alone.

    Costs no query if the organization has no rule, and otherwise three queries. If a matching rule
    excludes requesters, it also costs the queries of `find_requesters`.

    Args:
        organization: the current row of the organization.
        has_rules: True if the organization has an active approval rule.
    """
    ruled = [call.ruled for call in calls]
    rules = load_rules(organization) if has_rules or organization.four_eyes else []
    if not rules:
        return MakerRights(ruled)
    excluded = any(rule.excludes_requesters and any(map(rule.matches, ruled)) for rule in rules)
    if excluded:
        ruled = _add_requesters(calls)
    members = load_voters(organization.pk, {grant.made_by_id for grant in grants})
    return MakerRights(
        ruled, rules, {pk: replace(voter, deputy_for=()) for pk, voter in members.items()}
    )


def _add_requesters(calls: Sequence[PreapprovedCall]) -> list[RuledCard]:
    cards = [
        Approval(pk=number, run_id=call.card.run_id, tool_call_id=call.card.tool_call_id)
        for number, call in enumerate(calls)
    ]
    found = find_requesters(cards)
    return [
        replace(call.ruled, requesters=frozenset(each.user_id for each in found[number]))
        for number, call in enumerate(calls)
    ]
