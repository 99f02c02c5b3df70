"""Find the past cards that proposals of standing grants would have approved."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.utils import timezone

from agents.runs.models import Approval, ApprovalKind, ApprovalStatus
from agents.standing_grants.preapprovals import find_default_nulls
from agents.standing_grants.proposals import ProposedGrant, read_causes
from agents.standing_grants.run_facts import PastFacts, RunResults
from tools.contract import Level, Tool
from tools.contract.param_naming import ParamNaming
from tools.toolbox.grant_conditions import EarlierFacts
from tools.toolbox.grant_sources import depends_on_run, list_sources
from tools.toolbox.permissions import Cause, CauseKind
from tools.toolbox.provenance import Provenance
from tools.toolbox.standing_grants import AskingCall, GrantTerms, find_mismatch

MAX_PAST = 500
"""The maximum number of past cards that a proposal is compared with, newest first."""
MAX_AGE = timedelta(days=90)
_UNKNOWN_CAUSE = (Cause(CauseKind.LEVEL, "this changes data"),)


@dataclass(frozen=True)
class PastCall:
    """A past call that needed a person's decision; see `AskingCall`.

    Attributes:
        known: the paths that `find_defaults` has found, by the tool's definition.
    """

    tool: str
    level: Level
    employee_id: int
    run_id: int
    params: Mapping[str, Any]
    causes: tuple[Cause, ...]
    provenance: Provenance | None
    facts: EarlierFacts | None = None
    known: dict[str, frozenset[str]] = field(default_factory=dict, compare=False)

    def find_defaults(self, tool: Tool) -> frozenset[str]:
        """Find the paths at which null is the tool's default, once for all comparisons."""
        if tool.definition_hash not in self.known:
            self.known[tool.definition_hash] = find_default_nulls(tool, self.params)
        return self.known[tool.definition_hash]

    def as_asking_call(self, terms: GrantTerms, tool: Tool) -> AskingCall:
        """Return the call for the comparison with these terms, as if the tool and its account had
        not changed since the call."""
        return AskingCall(
            tool=self.tool,
            definition=terms.definition,
            level=self.level,
            account=terms.account,
            employee_id=self.employee_id,
            run_id=self.run_id,
            params=self.params,
            causes=self.causes,
            provenance=self.provenance,
            naming=ParamNaming.of(tool),
            defaults=self.find_defaults(tool),
            facts=self.facts,
        )


class CallColumns(NamedTuple):
    """The columns of a past card that describe its call, so that thousands of cards can be read
    without model instances."""

    level: str
    params: dict[str, Any]
    run_id: int
    run__employee_id: int
    tool_call__tool: str
    tool_call__judgment: dict[str, Any] | None
    tool_call__provenance: dict[str, Any] | None
    tool_call__pass_number: int
    tool_call__created_at: datetime
    tool_call__parent_call: int | None

    @property
    def pair(self) -> tuple[int, str]:
        """The ids by which past calls are grouped: employee and tool."""
        return self.run__employee_id, self.tool_call__tool

    def as_past_call(self, results: RunResults) -> PastCall:
        """Return the past call that these columns describe.

        Args:
            results: loads what the runs had seen.
        """
        stored = self.tool_call__provenance
        is_nested = self.tool_call__parent_call is not None
        place = (self.tool_call__pass_number, self.tool_call__created_at, is_nested)
        return PastCall(
            tool=self.tool_call__tool,
            level=Level(self.level),
            employee_id=self.run__employee_id,
            run_id=self.run_id,
            params=self.params,
            causes=read_causes(self.tool_call__judgment) or _UNKNOWN_CAUSE,
            provenance=Provenance.from_json(stored) if stored else None,
            facts=PastFacts(self.run_id, *place, results),
        )


@dataclass(frozen=True)
class GrantMatcher:
    """The terms of a proposal with its current tool, to compare with past calls."""

    terms: GrantTerms
    tool: Tool

    @classmethod
    def of(cls, proposal: ProposedGrant, tool: Tool) -> GrantMatcher:
        """Build the matcher for a proposal and the current tool; it covers calls of all runs."""
        return cls(replace(proposal.as_terms(tool), run_id=None), tool)

    @cached_property
    def tools(self) -> frozenset[str]:
        """The names of the tools whose results the terms need."""
        return frozenset(source.tool for source in list_sources(self.terms.conditions))

    @property
    def depends_on_run(self) -> bool:
        """True if the terms can match a call in one run but not the same call in another."""
        return depends_on_run(self.terms.conditions)

    def load_facts(self, run_ids: Collection[int], results: RunResults) -> None:
        """Load what the terms need to know about these runs."""
        if self.depends_on_run:
            results.load_facts(run_ids, self.tools)

    def covers(self, call: PastCall) -> bool:
        """Return True if the proposal would have approved the call."""
        return find_mismatch(call.as_asking_call(self.terms, self.tool), self.terms) is None


@dataclass(frozen=True)
class CoveredCards:
    """The result of comparing a proposal with past cards of its tool.

    Attributes:
        compared: the number of compared cards.
        covered: the cards that the proposal would have approved, newest first.
    """

    compared: int
    covered: tuple[Approval, ...]

    @property
    def denied(self) -> list[Approval]:
        """The covered cards that a person denied."""
        return [card for card in self.covered if card.status == ApprovalStatus.DENIED]


def find_covered_cards(organization_id: int, proposal: ProposedGrant, tool: Tool) -> CoveredCards:
    """Compare the proposal with the newest 500 cards of its tool in the last 90 days.

    The comparison assumes that the tool and its account were the same then, and ignores warnings on
    the cards.
    """
    matcher = GrantMatcher.of(proposal, tool)
    cards = load_past_cards(organization_id, tool.name, proposal.run_id)
    results = RunResults()
    matcher.load_facts(sorted({card.run_id for card in cards}), results)
    covered = tuple(card for card in cards if matcher.covers(read_past_call(card, results)))
    return CoveredCards(len(cards), covered)


class PastFigure(NamedTuple):
    """Counts of the past cards that a proposal would have approved.

    Attributes:
        compared: the number of compared cards.
        denied: the ids of the cards that it would have approved and a person denied, newest first.
        others: the number of other cards that it would have approved.
    """

    compared: int
    denied: tuple[int, ...]
    others: int


def count_covered(
    organization_id: int, matchers: Sequence[GrantMatcher], results: RunResults
) -> list[PastFigure]:
    """Count the cards that each proposal would have approved, as `find_covered_cards` does. The
    cards of a tool are loaded once for all its proposals.

    Args:
        matchers: proposals for one employee each.
    """
    cards = {
        tool: [
            (pk, status, CallColumns(*columns).as_past_call(results))
            for pk, status, *columns in _select_past(organization_id, tool).values_list(
                "pk", "status", *CallColumns._fields
            )[:MAX_PAST]
        ]
        for tool in {matcher.terms.tool for matcher in matchers}
    }
    return [_count(matcher, cards[matcher.terms.tool], results) for matcher in matchers]


def _count(
    matcher: GrantMatcher, cards: Sequence[tuple[int, str, PastCall]], results: RunResults
) -> PastFigure:
    mine = [card for card in cards if card[2].employee_id == matcher.terms.employee_id]
    matcher.load_facts(sorted({call.run_id for _, _, call in mine}), results)
    covered = [(pk, status) for pk, status, call in mine if matcher.covers(call)]
    denied = tuple(pk for pk, status in covered if status == ApprovalStatus.DENIED)
    return PastFigure(len(cards), denied, len(covered) - len(denied))


def load_past_cards(organization_id: int, tool: str, run_id: int | None = None) -> list[Approval]:
    """Load the newest cards of the tool, at most 500 from the last 90 days, without
    replaced cards."""
    rows = _select_past(organization_id, tool)
    here = rows if run_id is None else rows.filter(run_id=run_id)
    related = here.select_related("tool_call", "run__employee", "decided_by")
    return list(related.defer("preview", "tool_call__result")[:MAX_PAST])


def _select_past(organization_id: int, tool: str) -> QuerySet[Approval]:
    rows = Approval.objects.filter(
        organization_id=organization_id,
        kind=ApprovalKind.APPROVAL,
        tool_call__tool=tool,
        requested_at__gte=timezone.now() - MAX_AGE,
    )
    return rows.exclude(status=ApprovalStatus.SUPERSEDED).order_by("-pk")


def read_past_call(card: Approval, results: RunResults) -> PastCall:
    """Return the past call of a card.

    Args:
        results: loads what the runs had seen.
    """
    call = card.tool_call
    values = (card.level, card.params, card.run_id, card.run.employee_id)
    origin = (call.tool, call.judgment, call.provenance)
    place = (call.pass_number, call.created_at, call.parent_call_id)
    return CallColumns(*values, *origin, *place).as_past_call(results)
