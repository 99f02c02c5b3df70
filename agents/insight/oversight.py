"""Figures about oversight: how people decide cards, and how often the calls of each tool are denied
or edited.

All figures are counted from the cards themselves. Days are in UTC, as in all figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from django.contrib.auth.models import User

from agents.accounts.models import Organization
from agents.insight.decision_counts import TIMES, compute_median, load_all_sums
from agents.insight.decision_spans import APPROVED, DENIED, EDITED, PEOPLE, TOOLS, Data, merge

PERIODS = (7, 30, 90)
"""The periods that people can choose, in days."""
DEFAULT_PERIOD = 30
MIN_DECISIONS = 50
"""The minimum number of decisions that can lead to a warning."""
HASTY_PERCENT = 95
"""The percentage of quick approvals above which there is a warning."""


class PersonDecisions(NamedTuple):
    """The decisions of one person.

    Attributes:
        cards: the number of decided cards.
        decisions: the number of decisions; a bulk decision counts once for each outcome.
        in_bulk: the number of bulk decisions among these.
        approved, edited, denied: the number of cards with this outcome.
        quick: the number of decisions that approved in less than `QUICK_MS`.
        median_ms: the median time of a decision; for a bulk decision, the time of each of its rows.
    """

    user_id: int
    cards: int
    decisions: int
    in_bulk: int
    approved: int
    edited: int
    denied: int
    quick: int
    median_ms: int


class ToolCorrections(NamedTuple):
    """The decided calls of one tool.

    Attributes:
        calls: the number of calls with at least one decided card.
        corrected: the number of calls that were denied or edited.
        approved, edited, denied: the number of cards with this outcome.
    """

    tool: str
    calls: int
    approved: int
    edited: int
    denied: int
    corrected: int

    @property
    def corrected_percent(self) -> int:
        return round(100 * self.corrected / self.calls)


@dataclass(frozen=True)
class PersonFigures:
    """A person and their decisions."""

    name: str
    decided: PersonDecisions

    @property
    def quick_percent(self) -> int:
        """The share of decisions that were approvals in under two seconds, rounded down."""
        return 100 * self.decided.quick // self.decided.decisions

    @property
    def is_hasty(self) -> bool:
        """True if more than 95% of at least 50 decisions were approvals in under two seconds."""
        decided = self.decided
        return (
            decided.decisions >= MIN_DECISIONS
            and 100 * decided.quick > HASTY_PERCENT * decided.decisions
        )


class DayDecisions(NamedTuple):
    """The cards decided on one day."""

    approved: int = 0
    edited: int = 0
    denied: int = 0


@dataclass(frozen=True)
class Oversight:
    """The figures of a period.

    Attributes:
        people: each person who decided a card, in alphabetical order.
        tools: the decided calls of each tool, sorted by name.
        days: the cards that were decided on each day with decisions.
    """

    people: list[PersonFigures]
    tools: list[ToolCorrections]
    days: Mapping[date, DayDecisions]


def load_oversight(organization_id: int, days: int) -> Oversight:
    """Load the figures of the last `days` days, including today."""
    sums = load_all_sums(organization_id, days, (PEOPLE, TOOLS))
    return Oversight(
        _build_people(_add_up(sums[PEOPLE].values())),
        _build_tools(_add_up(sums[TOOLS].values())),
        {day: _build_day(data.values()) for day, data in sums[PEOPLE].items()},
    )


def load_person_figures(organization: Organization, days: int) -> list[PersonFigures]:
    """Load the decisions of each person who decided a card, in alphabetical order."""
    return load_oversight(organization.pk, days).people


def load_tool_corrections(organization_id: int, days: int) -> list[ToolCorrections]:
    """Load the figures of the decided calls of each tool, sorted by name."""
    return load_oversight(organization_id, days).tools


def _add_up(every: Iterable[Data]) -> Data:
    total: Data = {}
    for data in every:
        merge(total, data)
    return total


def _build_people(sums: Data) -> list[PersonFigures]:
    names = dict(User.objects.filter(pk__in=sums).values_list("pk", "username"))
    people = [
        PersonFigures(names[int(user_id)], _build_decisions(int(user_id), data))
        for user_id, data in sums.items()
        if int(user_id) in names and data.get(TIMES)
    ]
    return sorted(people, key=lambda person: (person.name.casefold(), person.name))


def _build_decisions(user_id: int, data: Data) -> PersonDecisions:
    times = data[TIMES]
    return PersonDecisions(
        user_id=user_id,
        cards=data["cards"],
        decisions=sum(times.values()),
        in_bulk=data["in_bulk"],
        approved=data.get(APPROVED, 0),
        edited=data.get(EDITED, 0),
        denied=data.get(DENIED, 0),
        quick=data["quick"],
        median_ms=compute_median(times),
    )


def _build_tools(sums: Data) -> list[ToolCorrections]:
    names = ("calls", APPROVED, EDITED, DENIED, "corrected")
    tools = [
        ToolCorrections(tool, *(data.get(name, 0) for name in names))
        for tool, data in sorted(sums.items())
    ]
    return [tool for tool in tools if tool.calls > 0]


def _build_day(people: Iterable[Data]) -> DayDecisions:
    every = list(people)
    return DayDecisions(
        *(sum(data.get(name, 0) for data in every) for name in (APPROVED, EDITED, DENIED))
    )
