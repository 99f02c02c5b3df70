"""Figures of oversight: how people decide cards, and how often the calls of each tool are denied or edited.

Everything is read from the cards themselves. Days are in UTC, as in all figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import Case, CharField, Count, Q, QuerySet, Value, When
from django.db.models.functions import TruncDate

from agents.accounts.models import Organization
from agents.approvals.models import Approval, ApprovalKind, ApprovalStatus
from agents.insight.figures import get_today
from agents.platform.queries.decision_times import (
    COLUMNS,
    PersonDecisions,
    ToolCorrections,
    fetch_person_decisions,
    fetch_tool_corrections,
)

PERIODS = (7, 30, 90)
"""The periods to choose from, in days."""
DEFAULT_PERIOD = 30
MIN_DECISIONS = 50
"""The smallest number of decisions that can lead to a warning."""
HASTY_PERCENT = 95
"""A larger share of quick approvals leads to a warning."""
MAX_LOOK_BACK_DAYS = 31

APPROVED, EDITED, DENIED = "approved", "edited", "denied"
IS_APPROVED = Q(status__in=(ApprovalStatus.APPROVED, ApprovalStatus.CONSUMED)) | Q(start_after__isnull=False)
"""Cards that a person approved, even if the approval was undone or a new card asked again after a change."""
OUTCOME = Case(
    When(~Q(kind=ApprovalKind.APPROVAL), then=Value("other")),
    When(status=ApprovalStatus.DENIED, then=Value(DENIED)),
    When(IS_APPROVED, then=Value(APPROVED)),
    When(status=ApprovalStatus.SUPERSEDED, then=Value(EDITED)),
    default=Value("other"),
    output_field=CharField(),
)
"""A person's decision about a card; `other` answers a question or resolves an unknown outcome."""


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
        return decided.decisions >= MIN_DECISIONS and 100 * decided.quick > HASTY_PERCENT * decided.decisions


class DayDecisions(NamedTuple):
    """The cards decided on one day."""

    approved: int = 0
    edited: int = 0
    denied: int = 0


def get_period_start(days: int) -> datetime:
    """Return midnight in UTC at the start of the first of the last `days` days."""
    return datetime.combine(get_today() - timedelta(days=days - 1), time.min, UTC)


def select_decisions(organization_id: int, since: datetime) -> QuerySet[Approval]:
    """Select the cards of an organization that people have decided since this time.

    This is the one place that defines which decisions are people's. An answer of a standing grant names its maker, but
    is not their decision.
    """
    return Approval.objects.filter(
        organization_id=organization_id, decided_by__isnull=False, decided_at__gte=since, standing_grant__isnull=True
    ).order_by()


def select_timed_decisions(organization: Organization, since: datetime) -> QuerySet[Any]:
    """Select the columns that `decision_times` needs, for decisions since this time and some before it.

    A decision from before a card's request does not matter, so looking back for the lifetime of a card is enough.
    """
    look_back = timedelta(days=min(organization.card_days, MAX_LOOK_BACK_DAYS))
    return _select_columns(organization.pk, since - look_back)


def load_person_figures(organization: Organization, days: int) -> list[PersonFigures]:
    """Load the decisions of each person who decided a card, in alphabetical order."""
    since = get_period_start(days)
    rows = fetch_person_decisions(select_timed_decisions(organization, since), since)
    names = dict(User.objects.filter(pk__in=[row.user_id for row in rows]).values_list("pk", "username"))
    people = [PersonFigures(names[row.user_id], row) for row in rows]
    return sorted(people, key=lambda person: (person.name.casefold(), person.name))


def load_tool_corrections(organization_id: int, days: int) -> list[ToolCorrections]:
    """Load the figures of the decided calls of each tool, sorted by name."""
    return fetch_tool_corrections(_select_columns(organization_id, get_period_start(days)))


def load_day_decisions(organization_id: int, days: int) -> Mapping[date, DayDecisions]:
    """Load the cards that were decided on each day with decisions."""
    rows = select_decisions(organization_id, get_period_start(days)).annotate(outcome=OUTCOME)
    by_day = rows.exclude(outcome="other").annotate(day=TruncDate("decided_at", tzinfo=UTC)).values("day")
    counted = by_day.annotate(approved=_count(APPROVED), edited=_count(EDITED), denied=_count(DENIED))
    return {day: DayDecisions(*numbers) for day, *numbers in counted.values_list("day", *DayDecisions._fields)}


def _select_columns(organization_id: int, since: datetime) -> QuerySet[Any]:
    rows: QuerySet[Any] = select_decisions(organization_id, since).annotate(outcome=OUTCOME)
    columns: QuerySet[Any] = rows.values(*COLUMNS)
    return columns


def _count(outcome: str) -> Count:
    return Count("pk", filter=Q(outcome=outcome))
