"""Votes: which people may approve a card under the approval rules, and which approvals are
missing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef
from django.db.models.functions import Now
from django.utils import timezone

from agents.accounts.models import Membership, Organization
from agents.approval_rules.loading import load_rules, load_voters
from agents.approvals.requesters import Requester, describe_requesters, find_requesters
from agents.employees.toolboxes import load_toolbox
from agents.platform.refusals import ApprovalsChanged, Forbidden
from agents.runs.models import Approval, ApprovalStatus, Vote
from tools.contract import Level
from tools.toolbox.approval_rules import (
    TWO_PERSON_RULE,
    CastVote,
    Entitlement,
    RuledCard,
    RuleState,
    RuleTerms,
    Voter,
    count_votes,
    describe_needs,
    find_stuck,
    list_counted,
    may_decide,
)
from tools.toolbox.rule_matching import SchemaFacts
from tools.toolbox.rulings import Ruling


@dataclass(frozen=True)
class CardStanding:
    """The approval rules that match a card, and the votes that count for it now.

    Attributes:
        rules: the approval rules that match the card.
        requesters: the people who requested the call, if a rule excludes them.
        voters: the members of the organization, by user id.
    """

    ruled: RuledCard
    rules: tuple[RuleTerms, ...]
    votes: tuple[CastVote, ...]
    requesters: tuple[Requester, ...]
    voters: dict[int, Voter]

    @property
    def states(self) -> list[RuleState]:
        return count_votes(self.ruled, self.votes, self.rules)

    @property
    def needs(self) -> str:
        """The approvals that are missing, such as `1 of 2: someone from Finance, not Ann`."""
        return describe_needs(
            self.ruled, self.states, ", ".join(each.name for each in self.requesters)
        )

    @property
    def applied(self) -> list[str]:
        """The named rules that match, each with the reason: `“Refunds” applies: amount is 700`."""
        reasons = ((rule.name, rule.find_reason(self.ruled)) for rule in self.rules if rule.id)
        return [f"“{name}” applies: {reason.why}" for name, reason in reasons if reason is not None]

    @property
    def stuck(self) -> list[str]:
        """The names of the rules that nobody can meet."""
        return [rule.name for rule in find_stuck(self.states, self.ruled, self.voters.values())]

    def list_barred(self) -> list[str]:
        """List the names of the approvers who have already approved the card or whose approval
        would not count."""
        return [
            voter.name
            for voter in self.voters.values()
            if voter.may_approve
            and not may_decide(voter, self.ruled, self.votes, self.rules).may_approve
        ]

    @property
    def counted(self) -> list[CastVote]:
        """The votes that count for at least one rule."""
        return list_counted(self.ruled, self.votes, self.rules)

    @property
    def approved_by(self) -> list[str]:
        """The people whose votes already count, such as `Ben for Fay` for a deputy's vote."""
        return [vote.name for vote in self.counted]

    @property
    def represented(self) -> list[tuple[str, str]]:
        """The approvers whom another person's vote represents, each with the name on that vote."""
        silent = [each for each in self.voters.values() if each.may_approve]
        return [
            (each.name, vote.name)
            for each in silent
            for vote in self.counted
            if each.id != vote.voter.id and CastVote(each).shares_a_voice_with(vote)
        ]

    @property
    def seen(self) -> str:
        """A list, as text, of the approvals that count so far; it changes whenever they change."""
        return ", ".join(self.approved_by)

    @property
    def is_two_person_rule(self) -> bool:
        """True if the two-person rule is the only rule that matches the card."""
        return self.rules == (TWO_PERSON_RULE,)

    @property
    def needs_several_people(self) -> bool:
        """True if a rule requires more than one person, so that one person's standing grant cannot
        approve the card."""
        return any(rule.needed > 1 for rule in self.rules)

    def may_decide(self, member: Membership) -> Entitlement:
        """Return this member's right to approve the card now."""
        voter = self.voters.get(member.user_id) or Voter(
            member.user_id, member.user.get_username(), may_approve=False
        )
        found = may_decide(voter, self.ruled, self.votes, self.rules)
        asked = any(each.user_id == voter.id for each in self.requesters)
        if (
            not found.may_approve
            and asked
            and all(state.rule.excludes_requesters for state in self.states if state.missing)
        ):
            why = f"two-person rule: {describe_requesters(self.requesters)}, so someone else must decide"
            return Entitlement(None, refusal=why)
        return found


def find_standings(
    organization: Organization, cards: Collection[Approval]
) -> dict[int, CardStanding]:
    """Find the matching approval rules and votes of each card, by card id; cards without a matching
    rule are left out.

    This takes one query if no rule matches, and at most nine more for any number of cards.

    Args:
        cards: the cards, loaded with their calls and runs.
    """
    rules = load_rules(organization)
    matching = {card.pk: _find_matching(card, rules) for card in cards}
    ruled = [card for card in cards if matching[card.pk]]
    if not ruled:
        return {}
    excluding = [
        card for card in ruled if any(rule.excludes_requesters for rule in matching[card.pk])
    ]
    requesters, voters = find_requesters(excluding), load_voters(organization.pk)
    votes = _load_votes(ruled, voters)
    return {
        card.pk: CardStanding(
            _describe(card, requesters.get(card.pk, ())),
            matching[card.pk],
            votes.get(card.pk, ()),
            tuple(requesters.get(card.pk, ())),
            voters,
        )
        for card in ruled
    }


@dataclass(frozen=True)
class VoteRight:
    """A member's right to approve a card now.

    Attributes:
        standing: None if no rule matches the card, so that one approver decides.
        breaks_glass: True if an admin approves alone in an emergency, see `break_glass`.
    """

    entitlement: Entitlement
    standing: CardStanding | None = None
    voter: Voter | None = None
    breaks_glass: bool = False

    @property
    def ruling(self) -> dict[str, Any] | None:
        """The record of rules and votes to store with the approval; None if no rule matches the
        card."""
        if self.standing is None or self.voter is None:
            return None
        found = Ruling.of(self.voter, self.standing.ruled, self.standing.votes, self.standing.rules)
        return replace(found, breaks_glass=self.breaks_glass).as_json()

    @property
    def still_needed(self) -> str:
        """The approvals still missing after this vote; empty if none is missing."""
        if self.standing is None or self.entitlement.vote is None:
            return ""
        return replace(self.standing, votes=(*self.standing.counted, self.entitlement.vote)).needs

    def refuse_unseen(self, seen: str | None) -> None:
        """Raise ApprovalsChanged if the card's approvals are no longer those that the person saw;
        if `seen` is None, nothing is checked."""
        current = self.standing.seen if self.standing else ""
        if seen is not None and seen != current:
            by, needs = (
                (self.standing.approved_by, self.standing.needs) if self.standing else ([], "")
            )
            what = f"it is now approved by {current}" if current else "no approval is left"
            raise ApprovalsChanged(
                f"the approvals have changed: {what}", approved_by=by, needs=needs
            )

    @property
    def is_repeated(self) -> bool:
        """True if the member has already cast this vote."""
        return self.standing is not None and not self.entitlement.may_approve


def require_vote(
    member: Membership, organization: Organization, card: Approval, decision_id: str
) -> VoteRight:
    """Return this member's right to approve the card. Call this under the lock of the card's run.

    Raises:
        Forbidden: their approval would not count for any rule.
    """
    may_have_rules = organization.four_eyes or getattr(card, "has_rules", True)
    standing = find_standings(organization, [card]).get(card.pk) if may_have_rules else None
    if standing is None:
        return VoteRight(Entitlement(None, completes=True))
    if decision_id and standing.votes and has_voted(member, card, decision_id):
        return VoteRight(Entitlement(None), standing)  # a repeated request does not change anything
    entitlement = standing.may_decide(member)
    if not entitlement.may_approve:
        raise Forbidden(entitlement.refusal)
    return VoteRight(entitlement, standing, standing.voters.get(member.user_id))


def cast_vote(card: Approval, right: VoteRight, decision_id: str, bulk_id: UUID | None) -> bool:
    """Record the vote; return True if it completes the approval. A vote that completes the approval
    alone is not recorded, unless a deputy casts it.

    Votes that no longer count are withdrawn, because each person can have only one vote.
    """
    vote, standing = right.entitlement.vote, right.standing
    if vote is None or standing is None:
        return right.entitlement.completes  # there is no vote to record
    if right.entitlement.completes and not standing.votes and vote.deputy_for is None:
        return True
    counted = {_get_ids(each) for each in standing.counted}
    for row in Vote.objects.filter(approval=card, withdrawn_at=None):
        if (row.voter_id, row.deputy_for_id) not in counted:
            Vote.objects.filter(pk=row.pk).update(withdrawn_at=Now())
    voter_id, deputy_for_id = _get_ids(vote)
    Vote.objects.create(
        approval=card,
        voter_id=voter_id,
        deputy_for_id=deputy_for_id,
        decision_id=decision_id,
        bulk_id=bulk_id,
    )
    return right.entitlement.completes


HAS_VOTES = Exists(Vote.objects.filter(approval_id=OuterRef("pk"), withdrawn_at=None))
"""The annotation `has_votes` for cards; it saves a query if a card has no votes."""


def list_voters(organization_id: int) -> dict[int, tuple[str, ...]]:
    """List the usernames of the people who have approved each waiting card, by card id."""
    waiting = {
        "approval__organization_id": organization_id,
        "approval__status": ApprovalStatus.PENDING,
    }
    rows = Vote.select_cast().filter(**waiting)
    found: dict[int, tuple[str, ...]] = {}
    for card_id, name in rows.values_list("approval_id", "voter__username"):
        found[card_id] = (*found.get(card_id, ()), name)
    return found


def has_voted(member: Membership, card: Approval, decision_id: str = "") -> bool:
    """Return True if this member has voted for the card, with this decision if one is given."""
    votes = Vote.objects.filter(approval=card, voter_id=member.user_id, withdrawn_at=None)
    return (votes.filter(decision_id=decision_id) if decision_id else votes).exists()


def withdraw_vote(user_id: int, card: Approval) -> bool:
    """Withdraw this person's vote on the card; return False if there is none."""
    votes = Vote.objects.filter(approval=card, voter_id=user_id, withdrawn_at=None)
    return bool(votes.update(withdrawn_at=Now()))


def keep_votes(card: Approval, replacement: Approval, without_user_id: int) -> None:
    """Copy the votes of all other people to the card's replacement, if it has the same digest."""
    if replacement.digest != card.digest:
        return
    votes = Vote.objects.filter(approval=card, withdrawn_at=None).exclude(voter_id=without_user_id)
    columns = ("voter_id", "deputy_for_id", "decision_id", "bulk_id", "cast_at")
    rows = [Vote(approval=replacement, **row) for row in votes.order_by("pk").values(*columns)]
    if rows:
        Vote.objects.bulk_create(rows)


def _get_ids(vote: CastVote) -> tuple[int, int | None]:
    return vote.voter.id, vote.deputy_for.id if vote.deputy_for else None


def _find_matching(card: Approval, rules: Collection[RuleTerms]) -> tuple[RuleTerms, ...]:
    """Find the rules that match this card, regardless of its requesters and age."""
    described = _describe(card, ())
    return tuple(rule for rule in rules if rule.matches(described))


def _describe(card: Approval, requesters: Collection[Requester]) -> RuledCard:
    call = card.tool_call
    tool = load_toolbox(card.organization_id).get_called_tool(call.tool, call.version)
    return RuledCard(
        tool=call.tool,
        category=tool.category if tool else "",
        level=Level(card.level),
        employee_id=card.run.employee_id,
        params=card.params,
        requesters=frozenset(each.user_id for each in requesters),
        age=timezone.now() - call.created_at,
        facts=SchemaFacts.of(tool.schema if tool else None, card.params),
    )


def _load_votes(
    cards: Collection[Approval], voters: dict[int, Voter]
) -> dict[int, tuple[CastVote, ...]]:
    """Load the votes on these cards, with the current roles of the voters, in one query.

    Votes of former members and former deputies are left out.
    """
    found: dict[int, tuple[CastVote, ...]] = {}
    rows = Vote.select_cast().filter(approval__in=[card.pk for card in cards])
    for card_id, voter_id, other_id in rows.values_list("approval_id", "voter_id", "deputy_for_id"):
        voter = voters.get(voter_id)
        other = (
            next((each for each in voter.deputy_for if each.id == other_id), None)
            if voter and other_id
            else None
        )
        if voter is not None and (other is not None or other_id is None):
            found[card_id] = (*found.get(card_id, ()), CastVote(voter, other))
    return found
