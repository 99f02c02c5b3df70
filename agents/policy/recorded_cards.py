"""Read recorded cards in batches, with the people who decided them and the approval rules that
applied then."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast
from django.utils import timezone

from agents.approvals.requesters import find_requesters
from agents.runs.models import APPROVED_STATES, Approval, ApprovalKind, ApprovalStatus, Vote
from tools.contract import Level
from tools.toolbox import Toolbox
from tools.toolbox.approval_rules import CastVote, RuledCard, RuleTerms, Voter
from tools.toolbox.rule_matching import SchemaFacts
from tools.toolbox.rulings import Ruling
from tools.toolbox.value_readings import TODAY

CARDS_AT_ONCE = 500


class CardRow(NamedTuple):
    """A card as a database row, with its JSON columns as unparsed text.

    Attributes:
        grant_id, maker_id: the standing grant that approved the card, and the user who created that
            grant.
    """

    pk: int
    organization_id: int
    run_id: int
    call_id: int
    employee_id: int
    tool: str
    version: str
    level: str
    status: str
    decided_by_id: int | None
    decided_at: datetime | None
    called_at: datetime
    grant_id: int | None
    maker_id: int | None
    params: str
    ruling: str | None
    judgment: str | None

    @property
    def is_approved(self) -> bool:
        """True if the card's call has started or may still start."""
        return self.status in APPROVED_STATES


@dataclass(frozen=True)
class PastCard:
    """A past card as approval rules see it.

    Attributes:
        card: the card as rules compare it. It has its requesters only if the ruling recorded them;
            see `add_requesters`.
        person: the person who completed the approval, or who created the standing grant that
            approved the card; None if the card was not approved.
        votes: the votes that were cast before that person's vote.
        rules: the rules that matched the card. For an approved card, these are the rules of that
            time, otherwise the current rules.
        is_kept: True if person, votes and rules were recorded with the approval; otherwise the
            current groups are used.
        has_requesters: True if the ruling recorded the requesters.
        breaks_glass: True if an admin approved the card alone in an emergency, bypassing all rules.
    """

    row: CardRow
    card: RuledCard
    person: Voter | None = None
    votes: tuple[CastVote, ...] = ()
    rules: tuple[RuleTerms, ...] = ()
    is_kept: bool = False
    has_requesters: bool = False
    breaks_glass: bool = False


def find_cards(organization_id: int) -> QuerySet[Approval]:
    """Return the organization's cards that ask for approval, except those that another card has
    replaced."""
    cards = Approval.objects.filter(organization_id=organization_id, kind=ApprovalKind.APPROVAL)
    return cards.exclude(status=ApprovalStatus.SUPERSEDED)


def read_cards(cards: QuerySet[Approval]) -> Iterator[list[CardRow]]:
    """Yield the cards in the order of the queryset, in batches."""
    texts = (Cast(name, TextField()) for name in ("params", "ruling", "tool_call__judgment"))
    columns = (
        "pk",
        "organization_id",
        "run_id",
        "tool_call_id",
        "run__employee_id",
        "tool_call__tool",
        "tool_call__version",
        "level",
    )
    decided = ("status", "decided_by_id", "decided_at", "tool_call__created_at")
    granted = ("standing_grant_id", "standing_grant__made_by_id")
    values = cards.values_list(*columns, *decided, *granted, *texts).iterator(CARDS_AT_ONCE)
    while batch := [CardRow._make(row) for row in islice(values, CARDS_AT_ONCE)]:
        yield batch


@dataclass(frozen=True)
class RulesOfToday:
    """The current rules, tools and people. They are used if the past ones were not recorded.

    Attributes:
        voters: the members of the organization, by user id.
    """

    toolbox: Toolbox
    rules: Collection[RuleTerms]
    voters: Mapping[int, Voter]

    def recall(self, row: CardRow) -> PastCard:
        """Return the card in its past state. If the card was not approved, its votes are missing;
        see `load_votes`.

        Raises:
            KeyError, TypeError, ValueError, AttributeError, OverflowError: the card's record is
                damaged.
        """
        ruling = _read_ruling(row)
        tool = self.toolbox.get_called_tool(row.tool, row.version)
        category = ruling.category if ruling else tool.category if tool else ""
        age = ruling.age if ruling else (row.decided_at or timezone.now()) - row.called_at
        requesters = ruling.requesters if ruling else frozenset()
        params = json.loads(row.params)
        facts = (
            ruling.facts
            if ruling is not None and ruling.reading is TODAY
            else SchemaFacts.of(tool.schema if tool else None, params)
        )
        card = RuledCard(
            row.tool, category, Level(row.level), row.employee_id, params, requesters, age, facts
        )
        if ruling is not None:
            kept = any(rule.excludes_requesters for rule in ruling.rules)
            past = PastCard(
                row,
                card,
                ruling.person,
                ruling.votes,
                tuple(rule.read_as(TODAY) for rule in ruling.rules),
                is_kept=True,
                has_requesters=kept,
            )
            return replace(past, breaks_glass=ruling.breaks_glass)
        if row.is_approved:
            return PastCard(row, card, self._find_person(row))
        return PastCard(row, card, rules=tuple(rule for rule in self.rules if rule.matches(card)))

    def _find_person(self, row: CardRow) -> Voter:
        """Return the person who approved the card alone, or created the standing grant that
        approved it, with their current groups."""
        user_id = row.decided_by_id if row.grant_id is None else row.maker_id
        known = self.voters.get(user_id or 0)
        return Voter(
            user_id or 0, known.name if known else "", groups=known.groups if known else frozenset()
        )


def _read_ruling(row: CardRow) -> Ruling | None:
    """Return the ruling recorded with the approval, or with the approval by a standing grant; None
    if there is none."""
    if not row.is_approved:
        return None
    if row.grant_id is not None:
        kept = read_judgment(row).get("answer", {}).get("ruling")
    else:
        kept = json.loads(row.ruling) if row.ruling else None
    return Ruling.from_json(kept) if kept else None


def read_judgment(row: CardRow) -> dict[str, Any]:
    """Return the facts that were recorded with the card's call; empty if none were recorded, as for
    old calls."""
    found = json.loads(row.judgment) if row.judgment else None
    return found if isinstance(found, dict) else {}


def add_requesters(cards: Collection[PastCard]) -> list[PastCard]:
    """Return the cards, each with those of its requesters who are still known."""
    wanted = [
        Approval(pk=each.row.pk, run_id=each.row.run_id, tool_call_id=each.row.call_id)
        for each in cards
    ]
    found = find_requesters(wanted)
    return [
        replace(
            each,
            card=replace(
                each.card, requesters=frozenset(one.user_id for one in found[each.row.pk])
            ),
        )
        for each in cards
    ]


def load_votes(
    cards: Collection[PastCard], voters: Mapping[int, Voter]
) -> dict[int, tuple[CastVote, ...]]:
    """Load the votes on these cards by card id, in one query. Votes of people who have left the
    organization are left out."""
    ids = [each.row.pk for each in cards]
    if not ids:
        return {}
    found: dict[int, tuple[CastVote, ...]] = defaultdict(tuple)
    rows = Vote.select_cast().filter(approval__in=ids)
    for card_id, voter_id, other_id in rows.values_list("approval_id", "voter_id", "deputy_for_id"):
        voter, other = voters.get(voter_id), voters.get(other_id or 0)
        if voter is not None and (other is not None or other_id is None):
            found[card_id] += (CastVote(voter, other),)
    return found
