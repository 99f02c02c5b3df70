"""Count ended calls, decisions and usage into the figures of their day. Each is counted exactly
once, outside the hot path.

Events and passes have ascending ids, and a head stores the last ones that were counted. Ids are
assigned before the commit, so the newest id is only a bound: rows up to it are counted once no open
transaction can still add a row with a lower id. On PostgreSQL, a transaction that can do so has a
lower number than any transaction that begins after the bound was read, because every writer of an
event or a pass locks its run first. SQLite has one writer at a time.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import partial
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import Max, Model
from django.db.models.fields.json import KT
from django.db.models.functions import Now

from agents.insight.figure_queries import (
    FIGURES_NOT_DUE,
    KEYS,
    LARGEST,
    CountedError,
    Key,
    add_to_figures,
    read_transaction_numbers,
)
from agents.insight.models import (
    BUCKETS,
    LONGEST_ERROR,
    EmployeeFigures,
    EmployeeUse,
    FiguresHead,
    ToolFigures,
    TotalFigures,
    TotalUse,
)
from agents.platform.bounded_waits import BoundedWait
from agents.readers.reading import OwnCursor
from agents.runs.budgets import MICROS
from agents.runs.engine.timing import timing
from agents.runs.models import CallStatus, Event, EventType, Pass, RunStatus, ToolCall

AT_ONCE = 2_000
"""The maximum number of events, and of passes, that one transaction counts. During the counting,
the sweeper's other work has to wait."""
MAX_COST = 1_000_000
"""The highest cost that a result can report."""
OTHER_USAGE = (EventType.RUN_TITLED, EventType.ANSWER_UNUSABLE)
"""The types of events that report a model's usage outside passes."""
_TYPES = (
    EventType.TOOL_RESULT,
    EventType.TOOL_REJECTED,
    EventType.CALL_RESOLVED,
    EventType.APPROVAL_REQUESTED,
    EventType.APPROVAL_DECIDED,
    EventType.RUN_FINISHED,
    *OTHER_USAGE,
)
FIGURE_WAITS = (
    BoundedWait("figures", FiguresHead.objects.all, "due_at", lambda: timing().count_pause, Now),
)
_ENDS: dict[str, str] = {CallStatus.SUCCEEDED: "succeeded", CallStatus.FAILED: "failed"}
_DECISIONS = {"approved": "approved", "denied": "denied"}
RUN_ENDS: dict[str, str] = {
    RunStatus.SUCCEEDED: "runs_succeeded",
    RunStatus.FAILED: "runs_failed",
    RunStatus.CANCELLED: "runs_cancelled",
}


class _CountedEvent(NamedTuple):
    """An event to count."""

    pk: int
    seq: int
    type: str
    at: datetime
    organization_id: int
    employee_id: int
    currency: str
    call_id: object
    status: str | None
    cost: Any

    @property
    def day(self) -> date:
        return self.at.astimezone(UTC).date()


class _CountedCall(NamedTuple):
    """The call that an event is about, in its current state."""

    finished_seq: int | None
    status: str
    tool: str
    duration_ms: int | None


@dataclass
class _Sums:
    """The numbers to add to the rows of each model: for each row's key, the number to add to each
    column."""

    added: dict[type[Model], defaultdict[Key, Counter[str]]] = field(
        default_factory=lambda: {model: defaultdict(Counter) for model in KEYS}
    )
    errors: dict[type[Model], dict[Key, _CountedEvent]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    def add_call(self, event: _CountedEvent, tool: str, **columns: int) -> None:
        """Add the columns to a tool's figures: those of the organization and of the employee for
        this day, and the total."""
        tool_key, employee_key = (
            (event.organization_id, event.day, tool),
            (event.employee_id, event.day, tool),
        )
        self._add(ToolFigures, tool_key, columns)
        self._add(EmployeeFigures, employee_key, columns)
        self._add(TotalFigures, (tool, event.currency), columns)
        if columns.get("failed"):
            self.errors[ToolFigures][tool_key] = self.errors[EmployeeFigures][employee_key] = event

    def add_use(self, employee_id: int, day: date, currency: str, **columns: int) -> None:
        """Add the columns to an employee's figures for the day, and to the total."""
        self._add(EmployeeUse, (employee_id, day), columns)
        self._add(TotalUse, (currency,), columns)

    def _add(self, model: type[Model], key: Key, columns: Mapping[str, int]) -> None:
        sums = self.added[model][key]
        for name, number in columns.items():
            sums[name] = max(sums[name], number) if name == LARGEST else sums[name] + number


def count_if_due() -> None:
    """Count a batch if the last batch was counted some seconds ago or did not count all rows.
    Sweepers call this."""
    if connection.in_atomic_block:
        return  # the bounds must be read before the transaction gets its number
    if not FIGURES_NOT_DUE.fetch_all():
        FiguresHead.objects.get_or_create(
            pk=FiguresHead.ONLY, defaults={"looked_at": Now(), "due_at": Now()}
        )
        count_batch()


def count_batch(most: int = AT_ONCE) -> bool:
    """Count up to `most` events and passes in one transaction. Do nothing while another process
    counts.

    Return True if more is left to count, now or once running transactions have ended.
    """
    newest = _find_newest_ids()
    with transaction.atomic():
        head = (
            FiguresHead.objects.select_for_update(skip_locked=True)
            .filter(pk=FiguresHead.ONLY)
            .first()
        )
        if head is None:
            return False
        numbers = read_transaction_numbers()
        # Set new bounds after a restore too, because transaction numbers may have started again.
        if head.is_done or head.asked_in > numbers.own:
            head.event_bound = max(head.event_id, newest[0])
            head.pass_bound = max(head.pass_id, newest[1])
            head.asked_in = numbers.own
        if numbers.oldest >= head.asked_in:
            _count_up_to_bounds(head, most)
        FiguresHead.objects.filter(pk=head.pk).update(
            event_id=head.event_id,
            pass_id=head.pass_id,
            event_bound=head.event_bound,
            pass_bound=head.pass_bound,
            asked_in=head.asked_in,
            looked_at=Now(),
            due_at=Now() + timing().count_pause if head.is_done else Now(),
        )
    return not head.is_done


def _find_newest_ids() -> tuple[int, int]:
    """Return the ids of the newest event and pass. Call this before the transaction that counts."""
    event = Event.objects.aggregate(newest=Max("pk"))["newest"]
    pass_ = Pass.objects.aggregate(newest=Max("pk"))["newest"]
    return event or 0, pass_ or 0


def _count_up_to_bounds(head: FiguresHead, most: int) -> None:
    sums = _Sums()
    head.event_id = _count_events(head, most, sums)
    head.pass_id = _count_passes(head, most, sums)
    for model, rows in sums.added.items():
        add_to_figures(model, rows, _load_errors(sums.errors[model]))


def _count_events(head: FiguresHead, most: int, sums: _Sums) -> int:
    """Add the next events to the sums; return the id of the last one."""
    uncounted = Event.objects.filter(
        pk__gt=head.event_id, pk__lte=head.event_bound, type__in=_TYPES
    ).order_by("pk")
    rows = uncounted.values_list(
        "pk",
        "seq",
        "type",
        "created_at",
        "run__organization_id",
        "run__employee_id",
        "run__organization__currency",
        KT("payload__call_id"),
        KT("payload__status"),
        "payload__result__metadata__cost",
    )
    events = [_CountedEvent(*row) for row in rows[:most]]
    calls = _load_calls(events)
    others = _load_other_usage(events)
    for event in events:
        if (used := others.get(event.pk)) is not None:
            sums.add_use(event.employee_id, event.day, event.currency, **used)
        elif event.type == EventType.RUN_FINISHED:
            if (column := RUN_ENDS.get(event.status or "")) is not None:
                sums.add_use(event.employee_id, event.day, event.currency, **{column: 1})
        elif (call := calls.get(_parse_call_id(event.call_id))) is not None:
            _count_call_event(event, call, sums)
    return events[-1].pk if len(events) == most else head.event_bound


def _parse_call_id(value: object) -> int | None:
    """Return the call id of an event. Return None for any other value, so that a bad event does not
    stop the counting."""
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def _load_calls(events: Iterable[_CountedEvent]) -> dict[int | None, _CountedCall]:
    wanted = {row for event in events if (row := _parse_call_id(event.call_id)) is not None}
    rows = ToolCall.objects.filter(pk__in=wanted).order_by()
    found = rows.values_list("pk", "finished_seq", "status", "tool", "duration_ms")
    return {pk: _CountedCall(seq, status, tool, took) for pk, seq, status, tool, took in found}


def _load_other_usage(events: Iterable[_CountedEvent]) -> dict[int, dict[str, int]]:
    """Return the usage of title requests and unusable responses, by event: these call the model,
    but are not passes."""
    wanted = [event.pk for event in events if event.type in OTHER_USAGE]
    if not wanted:
        return {}
    used = (
        "payload__input_tokens",
        "payload__output_tokens",
        "payload__cost",
        "payload__duration_ms",
    )
    rows = Event.objects.filter(pk__in=wanted).order_by().values_list("pk", *used)
    return {
        pk: {
            "input_tokens": given or 0,
            "output_tokens": got or 0,
            "cost_micros": _to_micros(cost),
            "duration_ms": took or 0,
        }
        for pk, given, got, cost, took in rows
    }


def _count_call_event(event: _CountedEvent, call: _CountedCall, sums: _Sums) -> None:
    if event.type == EventType.APPROVAL_REQUESTED:
        sums.add_call(event, call.tool, asked=1)
    elif event.type == EventType.APPROVAL_DECIDED:
        if event.status in _DECISIONS:
            sums.add_call(event, call.tool, **{_DECISIONS[event.status]: 1})
    elif event.seq == call.finished_seq and (end := _ENDS.get(call.status)) is not None:
        was_timed = event.type == EventType.TOOL_RESULT and call.duration_ms is not None
        took = _build_duration_columns(call.duration_ms or 0) if was_timed else {}
        sums.add_call(event, call.tool, **{end: 1}, **took, cost_micros=_to_micros(event.cost))


def _build_duration_columns(duration_ms: int) -> dict[str, int]:
    bucket = next(
        (column for column, longest in BUCKETS.items() if duration_ms <= longest), "longer"
    )
    return {bucket: 1, "duration_ms": duration_ms, LARGEST: duration_ms}


def _to_micros(cost: Any) -> int:
    """Convert the cost that a result reports from units of the currency to micros; return 0 if it
    is not an amount."""
    is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
    if not is_number or (isinstance(cost, float) and not math.isfinite(cost)):
        return 0
    amount: float = min(max(cost, 0), MAX_COST)
    return round(amount * MICROS)


def _count_passes(head: FiguresHead, most: int, sums: _Sums) -> int:
    """Add the next passes to the sums; return the id of the last one."""
    uncounted = Pass.objects.filter(pk__gt=head.pass_id, pk__lte=head.pass_bound).order_by("pk")
    owner = ("run__employee_id", "run__organization__currency")
    usage = ("input_tokens", "output_tokens", "cost_micros", "duration_ms")
    rows = list(uncounted.values_list("pk", "created_at", *owner, *usage, named=True)[:most])
    for row in rows:
        day = row.created_at.astimezone(UTC).date()
        used = {column: getattr(row, column) for column in usage}
        sums.add_use(row.run__employee_id, day, row.run__organization__currency, passes=1, **used)
    return int(rows[-1].pk) if len(rows) == most else head.pass_bound


def _load_errors(events: Mapping[Key, _CountedEvent]) -> dict[Key, CountedError]:
    """Return the failure that each of these events reports, by the key of its row."""
    if not events:
        return {}
    found = Event.objects.filter(pk__in={event.pk for event in events.values()}).order_by()
    fields = ("pk", "payload__result__error", KT("payload__code"), KT("payload__reason"))
    details = {pk: (error, code, reason) for pk, error, code, reason in found.values_list(*fields)}
    return {
        key: CountedError(*_describe_error(*details[event.pk]), event.at)
        for key, event in events.items()
    }


def _describe_error(error: Any, code: str | None, reason: str | None) -> tuple[str, str]:
    """Return the code and message of a failed result, a rejected call, or an outcome that a person
    stated."""
    if isinstance(error, dict):
        code, reason = str(error.get("code", "")), str(error.get("message", ""))
    message = reason or ""
    short = message if len(message) <= LONGEST_ERROR else f"{message[: LONGEST_ERROR - 1]}…"
    return (code or "OUTCOME_UNKNOWN")[:40], short


def _find_counted(column: str) -> int:
    return (
        FiguresHead.objects.filter(pk=FiguresHead.ONLY).values_list(column, flat=True).first() or 0
    )


CURSORS = (
    OwnCursor(Event, partial(_find_counted, "event_id")),
    OwnCursor(Pass, partial(_find_counted, "pass_id")),
)
