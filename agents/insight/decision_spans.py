"""The decisions of people in a span of time, summed by day in UTC: by person, by tool, and by
employee.

The database does not record when a person opened a card. The time that a decision took is therefore
measured from the request of its card, or from the person's previous decision if that was later,
because the person cannot have looked at the card for longer. There are two exceptions. The time of
a bulk decision is measured from its oldest card and divided equally among its rows. And if a person
decides a card that they have just edited, the time is measured from the earlier card, which they
already knew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Case, CharField, OuterRef, Q, QuerySet, Subquery, Value, When

from agents.approvals.decisions import DENY_REASONS
from agents.runs.models import (
    APPROVED_STATES,
    TERMINAL_CALLS,
    Approval,
    ApprovalKind,
    ApprovalStatus,
    CallStatus,
)

QUICK_MS = 2_000
"""An approval that took fewer milliseconds than this is considered quick."""
MARGIN = timedelta(hours=1)
"""The time before and after a span for which decisions are also read, so that bulk decisions are
not split."""
PEOPLE, TOOLS = "people", "tools"
OWN_WORDS, NO_REASON = "Other reasons", "No reason"
APPROVED, EDITED, DENIED, OTHER = "approved", "edited", "denied", "other"
IS_APPROVED = Q(status__in=APPROVED_STATES) | Q(start_after__isnull=False)
"""The condition for cards that a person approved, even if the approval was undone, or a new card
was needed after a change."""
OUTCOME = Case(
    When(~Q(kind=ApprovalKind.APPROVAL), then=Value(OTHER)),
    When(status=ApprovalStatus.DENIED, then=Value(DENIED)),
    When(IS_APPROVED, then=Value(APPROVED)),
    When(status=ApprovalStatus.SUPERSEDED, then=Value(EDITED)),
    default=Value(OTHER),
    output_field=CharField(),
)
"""A person's decision about a card, as an expression; `other` means that a question was answered or
an unknown outcome resolved."""

Data = dict[str, Any]
"""Nested sums by name; a list contains the ids of cards whose calls must be checked again."""


class _Row(NamedTuple):
    """A decided card."""

    pk: int
    decided_by_id: int
    decided_at: datetime
    requested_at: datetime
    outcome: str
    bulk_id: UUID | None
    tool_call_id: int
    sequence: int
    status: str
    reason: str
    tool_call__tool: str
    tool_call__status: str
    run__employee_id: int

    @property
    def day(self) -> date:
        return self.decided_at.astimezone(UTC).date()


@dataclass(frozen=True)
class _Timed:
    """A decided card with the time that its decision took. `counts` is True for single decisions,
    and for the last row of each outcome in a bulk decision."""

    row: _Row
    ms: int
    counts: bool


class DaySums(defaultdict[tuple[date, str], Data]):
    """Sums by day and subject; a subject is `people`, `tools` or `employee:ID`."""

    def __init__(self) -> None:
        super().__init__(dict)

    def add(self, day: date, subject: str, *path: str, number: int = 1) -> None:
        """Add a number to the sum that a path of names leads to."""
        data = self[day, subject]
        for name in path[:-1]:
            data = data.setdefault(name, {})
        data[path[-1]] = data.get(path[-1], 0) + number


def merge(into: Data, more: Data) -> None:
    """Add the nested sums of `more` to the nested sums of `into`, in place."""
    for name, value in more.items():
        if isinstance(value, dict):
            merge(into.setdefault(name, {}), value)
        else:
            into[name] = into[name] + value if name in into else value


def name_employee(employee_id: int) -> str:
    """Return the subject of an employee's sums, such as `employee:7`."""
    return f"employee:{employee_id}"


def select_decisions(organization_id: int) -> QuerySet[Approval]:
    """Select the cards of an organization that people have decided.

    For figures and suggestions, this defines which decisions are made by people. An approval by a
    standing grant names the grant's creator, but is not the creator's decision.
    """
    decided = {
        "decided_by__isnull": False,
        "decided_at__isnull": False,
        "standing_grant__isnull": True,
    }
    return Approval.objects.filter(organization_id=organization_id, **decided).order_by()


def sum_decisions(organization_id: int, since: datetime, until: datetime | None = None) -> DaySums:
    """Sum the decisions from `since` (included) to `until` (excluded; None for no end).

    The sums of two neighboring spans add up to the sums of the whole span. A bulk decision is
    counted on the day of its last row, and a call on the day of its last decided card. So an
    earlier day, on which the call was counted before, may get a negative number.
    """
    sums = DaySums()
    rows = _load_rows(organization_id, since, until)
    inside = [
        timed
        for own in _group_by_person(rows)
        for timed in _time_decisions(own)
        if timed.row.decided_at >= since and (until is None or timed.row.decided_at < until)
    ]
    decided = [timed for timed in inside if timed.row.outcome != OTHER]
    for timed in decided:
        _add_person(sums, timed)
        _add_employee(sums, timed)
    _add_calls(sums, organization_id, [timed.row for timed in decided], since)
    return sums


def classify_reason(reason: str) -> str:
    """Return the offered reason with which a denial begins; for another or an empty reason, return
    the name of its group."""
    if not reason.strip():
        return NO_REASON
    return next(
        (each for each in DENY_REASONS if reason == each or reason.startswith(f"{each}. ")),
        OWN_WORDS,
    )


def _load_rows(organization_id: int, since: datetime, until: datetime | None) -> list[_Row]:
    """Load the decided cards in and around the span, and three earlier cards of each person who
    decided them."""
    every = select_decisions(organization_id)
    start = since - MARGIN
    near = every.filter(decided_at__gte=start)
    rows = _read(near if until is None else near.filter(decided_at__lt=until + MARGIN))
    earlier = every.filter(decided_at__lt=start)
    return [*_read_newest_of(earlier, {row.decided_by_id for row in rows}), *rows]


def _read_newest_of(earlier: QuerySet[Approval], people: Collection[int]) -> list[_Row]:
    """Read each person's three newest decisions among these earlier ones. Three are enough to time
    the next decision, even after an edit."""
    if not people:
        return []
    own = earlier.filter(decided_by_id=OuterRef("pk")).order_by("-decided_at", "-pk").values("pk")
    newest = [Subquery(own[place : place + 1]) for place in range(3)]
    found = User.objects.filter(pk__in=people).values_list(*newest)
    ids = [pk for row in found for pk in row if pk is not None]
    return _read(Approval.objects.filter(pk__in=ids)) if ids else []


def _read(rows: QuerySet[Approval]) -> list[_Row]:
    found: QuerySet[Any] = rows.annotate(outcome=OUTCOME)
    return [_Row(*row) for row in found.order_by().values_list(*_Row._fields)]


def _group_by_person(rows: Sequence[_Row]) -> list[list[_Row]]:
    """Return the rows of each person, in the order of their decisions."""
    people: dict[int, list[_Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.decided_at, row.pk)):
        people[row.decided_by_id].append(row)
    return list(people.values())


def _time_decisions(own: Sequence[_Row]) -> Iterator[_Timed]:
    """Yield one person's decisions with the time that each took."""
    bulks: dict[UUID, list[int]] = defaultdict(list)
    for place, row in enumerate(own):
        if row.bulk_id is not None:
            bulks[row.bulk_id].append(place)
    shared = {bulk_id: _share_time(own, places) for bulk_id, places in bulks.items()}
    last = {(row.bulk_id, row.outcome): row.pk for row in own}
    for place, row in enumerate(own):
        if row.bulk_id is None:
            yield _Timed(row, _time_single(own, place), counts=True)
        else:
            yield _Timed(row, shared[row.bulk_id], counts=last[row.bulk_id, row.outcome] == row.pk)


def _time_single(own: Sequence[_Row], place: int) -> int:
    row, first = own[place], place
    if (
        place
        and own[place - 1].outcome == EDITED
        and own[place - 1].tool_call_id == row.tool_call_id
    ):
        first = place - 1
    asked = own[first].requested_at
    return _count_ms(row.decided_at - (max(own[first - 1].decided_at, asked) if first else asked))


def _share_time(own: Sequence[_Row], places: Sequence[int]) -> int:
    """Return the time that each row of a bulk decision gets."""
    asked = min(own[place].requested_at for place in places)
    start = max(own[places[0] - 1].decided_at, asked) if places[0] else asked
    return _count_ms((own[places[-1]].decided_at - start) / len(places))


def _count_ms(span: timedelta) -> int:
    return round(span / timedelta(milliseconds=1))


def _add_person(sums: DaySums, timed: _Timed) -> None:
    row = timed.row
    of_person = row.day, PEOPLE, str(row.decided_by_id)
    sums.add(*of_person, "cards")
    sums.add(*of_person, row.outcome)
    if timed.counts:
        sums.add(*of_person, "times", str(timed.ms))
        sums.add(*of_person, "in_bulk", number=int(row.bulk_id is not None))
        sums.add(*of_person, "quick", number=int(row.outcome == APPROVED and timed.ms < QUICK_MS))


def _add_employee(sums: DaySums, timed: _Timed) -> None:
    """Add the card to the sums of its tool and employee. Calls that have not ended are listed, so
    that each page checks them again."""
    row = timed.row
    subject, tool = name_employee(row.run__employee_id), (TOOLS, row.tool_call__tool)
    sums.add(row.day, TOOLS, row.tool_call__tool, row.outcome)
    sums.add(row.day, subject, *tool, row.outcome)
    sums.add(row.day, subject, *tool, "times", str(timed.ms))
    if row.outcome == DENIED:
        sums.add(row.day, subject, "reasons", classify_reason(row.reason))
    is_started = row.status == ApprovalStatus.CONSUMED
    if is_started and row.tool_call__status in TERMINAL_CALLS:
        sums.add(row.day, subject, *tool, "started")
        sums.add(
            row.day,
            subject,
            *tool,
            "failed",
            number=int(row.tool_call__status == CallStatus.FAILED),
        )
    elif is_started or row.status == ApprovalStatus.APPROVED:
        sums[row.day, subject][TOOLS][row.tool_call__tool].setdefault("open", []).append(row.pk)


def _add_calls(sums: DaySums, organization_id: int, rows: Sequence[_Row], since: datetime) -> None:
    """Count each call on the day of its last decided card, and each corrected call on the day of
    its last correction."""
    again = {row.tool_call_id for row in rows if row.sequence > 1}
    before = select_decisions(organization_id).filter(tool_call_id__in=again, decided_at__lt=since)
    earlier = _read(before) if again else []
    for name, counted in (("calls", (APPROVED, EDITED, DENIED)), ("corrected", (EDITED, DENIED))):
        now, then = _find_last(rows, counted), _find_last(earlier, counted)
        for call_id, row in now.items():
            sums.add(row.day, TOOLS, row.tool_call__tool, name)
            if call_id in then:
                sums.add(then[call_id].day, TOOLS, row.tool_call__tool, name, number=-1)


def _find_last(rows: Sequence[_Row], outcomes: Collection[str]) -> dict[int, _Row]:
    """Find the last card of each call with one of these outcomes."""
    ordered = sorted(rows, key=lambda row: (row.decided_at, row.pk))
    return {row.tool_call_id: row for row in ordered if row.outcome in outcomes}
