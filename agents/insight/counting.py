"""Counts what ended, was decided and was used into the figures of its day: each of it exactly once, off the hot path.

Events and passes have ascending ids, and a head remembers up to which they were counted. Ids are given before the
commit, so the newest one is only a bound: it is counted up to once no transaction is left that could bring an earlier
one. On PostgreSQL such a transaction has a lower number than one that begins after the bound was read, because
whatever writes an event or a pass has locked its run before. SQLite has one writer at a time.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cache
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import Max, Model
from django.db.models.fields.json import KT
from django.db.models.functions import Now

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
from agents.platform.queries.sweeps import FIGURES_DUE
from agents.runs.engine.timing import timing
from agents.runs.models import CallStatus, Event, EventType, Pass, RunStatus, ToolCall

AT_ONCE = 2_000
"""Events, and passes, of one transaction: the sweeper does nothing else for as long as that takes."""
MICROS = 1_000_000
MOST_COST = 1_000_000
"""A result that says it cost more is not believed."""
_TYPES = (
    EventType.TOOL_RESULT,
    EventType.TOOL_REJECTED,
    EventType.CALL_RESOLVED,
    EventType.APPROVAL_REQUESTED,
    EventType.APPROVAL_DECIDED,
    EventType.RUN_FINISHED,
    EventType.RUN_TITLED,
)
_ENDS: dict[str, str] = {CallStatus.SUCCEEDED: "succeeded", CallStatus.FAILED: "failed"}
_DECISIONS = {"approved": "approved", "denied": "denied"}
_RUN_ENDS: dict[str, str] = {
    RunStatus.SUCCEEDED: "runs_succeeded",
    RunStatus.FAILED: "runs_failed",
    RunStatus.CANCELLED: "runs_cancelled",
}
_KEYS: dict[type[Model], tuple[str, ...]] = {
    ToolFigures: ("organization_id", "day", "tool"),
    EmployeeFigures: ("employee_id", "day", "tool"),
    EmployeeUse: ("employee_id", "day"),
    TotalFigures: ("tool", "currency"),
    TotalUse: ("currency",),
}
_LARGEST = "slowest_ms"
_NEWEST = ("last_error_code", "last_error", "last_error_at")

Key = tuple[Any, ...]


class _Line(NamedTuple):
    """An event as it is counted."""

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


class _Call(NamedTuple):
    """The call that an event is about, as it is now."""

    finished_seq: int | None
    status: str
    tool: str
    duration_ms: int | None


@dataclass
class _Sums:
    """What is added to the rows: columns by key, for each model."""

    added: dict[type[Model], defaultdict[Key, Counter[str]]] = field(
        default_factory=lambda: {model: defaultdict(Counter) for model in _KEYS}
    )
    errors: dict[type[Model], dict[Key, _Line]] = field(default_factory=lambda: defaultdict(dict))

    def call(self, line: _Line, tool: str, **columns: int) -> None:
        """Add to the days and to the total of a tool."""
        of_tool, of_employee = (line.organization_id, line.day, tool), (line.employee_id, line.day, tool)
        self._add(ToolFigures, of_tool, columns)
        self._add(EmployeeFigures, of_employee, columns)
        self._add(TotalFigures, (tool, line.currency), columns)
        if columns.get("failed"):
            self.errors[ToolFigures][of_tool] = self.errors[EmployeeFigures][of_employee] = line

    def use(self, employee_id: int, day: date, currency: str, **columns: int) -> None:
        """Add to the day of an employee, and to the total."""
        self._add(EmployeeUse, (employee_id, day), columns)
        self._add(TotalUse, (currency,), columns)

    def _add(self, model: type[Model], key: Key, columns: Mapping[str, int]) -> None:
        sums = self.added[model][key]
        for name, number in columns.items():
            sums[name] = max(sums[name], number) if name == _LARGEST else sums[name] + number


def count_if_due() -> None:
    """What a sweeper does: the next step, if the last one is some seconds ago or has left something."""
    if connection.in_atomic_block:
        return  # the bounds would be read too late, after this transaction got its number
    head = FIGURES_DUE.row()
    if head is None:
        FiguresHead.objects.get_or_create(pk=FiguresHead.ONLY, defaults={"looked_at": Now(), "due_at": Now()})
    if head is None or head.is_due:
        count()


def count(most: int = AT_ONCE) -> bool:
    """One step, in a transaction of its own: at most so many events and passes.

    Returns True if there is more to count already, or will be when running transactions have ended. Somebody else who
    counts at the moment is left alone.
    """
    newest = _newest()
    with transaction.atomic():
        head = FiguresHead.objects.select_for_update(skip_locked=True).filter(pk=FiguresHead.ONLY).first()
        if head is None:
            return False
        mine, oldest = _transactions()
        if head.is_done or head.asked_in > mine:  # a restored database may number its transactions anew
            head.event_bound = max(head.event_id, newest[0])
            head.pass_bound = max(head.pass_id, newest[1])
            head.asked_in = mine
        if oldest >= head.asked_in:
            _count_up_to_bounds(head, most)
        FiguresHead.objects.filter(pk=head.pk).update(
            event_id=head.event_id,
            pass_id=head.pass_id,
            event_bound=head.event_bound,
            pass_bound=head.pass_bound,
            asked_in=head.asked_in,
            looked_at=Now(),
            due_at=Now() + timing().count_again if head.is_done else Now(),
        )
    return not head.is_done


def _newest() -> tuple[int, int]:
    """The newest event and pass; to be read before the transaction that counts."""
    event = Event.objects.aggregate(newest=Max("pk"))["newest"]
    pass_ = Pass.objects.aggregate(newest=Max("pk"))["newest"]
    return event or 0, pass_ or 0


def _transactions() -> tuple[int, int]:
    """The number of this transaction and of the oldest one that still writes."""
    if connection.vendor != "postgresql":
        return 0, 0
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_current_xact_id()::text::bigint, pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
        )
        mine, oldest = cursor.fetchone()
    return int(mine), int(oldest)


def _count_up_to_bounds(head: FiguresHead, most: int) -> None:
    sums = _Sums()
    head.event_id = _count_events(head, most, sums)
    head.pass_id = _count_passes(head, most, sums)
    for model, rows in sums.added.items():
        _add_to_rows(model, rows, _errors(sums.errors[model]))


def _count_events(head: FiguresHead, most: int, sums: _Sums) -> int:
    """Returns the id up to which they are counted now."""
    next_ones = Event.objects.filter(pk__gt=head.event_id, pk__lte=head.event_bound, type__in=_TYPES).order_by("pk")
    rows = next_ones.values_list(
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
    lines = [_Line(*row) for row in rows[:most]]
    calls = _calls_of(lines)
    titles = _titles_of(lines)
    for line in lines:
        if (used := titles.get(line.pk)) is not None:
            sums.use(line.employee_id, line.day, line.currency, **used)
        elif line.type == EventType.RUN_FINISHED:
            if (column := _RUN_ENDS.get(line.status or "")) is not None:
                sums.use(line.employee_id, line.day, line.currency, **{column: 1})
        elif (call := calls.get(_row_id(line.call_id))) is not None:
            _count_line(line, call, sums)
    return lines[-1].pk if len(lines) == most else head.event_bound


def _row_id(told: object) -> int | None:
    """The call that an event names; None if it names none, whatever stands there: counting never stops at one event."""
    text = str(told)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def _calls_of(lines: Iterable[_Line]) -> dict[int | None, _Call]:
    wanted = {row for line in lines if (row := _row_id(line.call_id)) is not None}
    rows = ToolCall.objects.filter(pk__in=wanted).order_by()
    found = rows.values_list("pk", "finished_seq", "status", "tool", "duration_ms")
    return {pk: _Call(seq, status, tool, took) for pk, seq, status, tool, took in found}


def _titles_of(lines: Iterable[_Line]) -> dict[int, dict[str, int]]:
    """By event, what asking for a run's name used: a request like those of passes, but no pass."""
    wanted = [line.pk for line in lines if line.type == EventType.RUN_TITLED]
    if not wanted:
        return {}
    used = ("payload__input_tokens", "payload__output_tokens", "payload__cost")
    rows = Event.objects.filter(pk__in=wanted).order_by().values_list("pk", *used)
    return {
        pk: {"input_tokens": given or 0, "output_tokens": got or 0, "cost_micros": _micros(cost)}
        for pk, given, got, cost in rows
    }


def _count_line(line: _Line, call: _Call, sums: _Sums) -> None:
    if line.type == EventType.APPROVAL_REQUESTED:
        sums.call(line, call.tool, asked=1)
    elif line.type == EventType.APPROVAL_DECIDED:
        if line.status in _DECISIONS:
            sums.call(line, call.tool, **{_DECISIONS[line.status]: 1})
    elif line.seq == call.finished_seq and (end := _ENDS.get(call.status)) is not None:
        was_timed = line.type == EventType.TOOL_RESULT and call.duration_ms is not None
        took = _took(call.duration_ms or 0) if was_timed else {}
        sums.call(line, call.tool, **{end: 1}, **took, cost_micros=_micros(line.cost))


def _took(duration_ms: int) -> dict[str, int]:
    bucket = next((column for column, longest in BUCKETS.items() if duration_ms <= longest), "longer")
    return {bucket: 1, "duration_ms": duration_ms, _LARGEST: duration_ms}


def _micros(cost: Any) -> int:
    """What a tool says that a call cost, in units of the currency; 0 if that is no amount."""
    is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
    if not is_number or (isinstance(cost, float) and not math.isfinite(cost)):
        return 0
    amount: float = min(max(cost, 0), MOST_COST)
    return round(amount * MICROS)


def _count_passes(head: FiguresHead, most: int, sums: _Sums) -> int:
    """Returns the id up to which they are counted now."""
    next_ones = Pass.objects.filter(pk__gt=head.pass_id, pk__lte=head.pass_bound).order_by("pk")
    whose = ("run__employee_id", "run__organization__currency")
    used = ("input_tokens", "output_tokens", "cost_micros", "duration_ms")
    rows: list[tuple[Any, ...]] = list(next_ones.values_list("pk", "created_at", *whose, *used)[:most])
    for _, at, employee_id, currency, *values in rows:
        day = at.astimezone(UTC).date()
        sums.use(employee_id, day, currency, passes=1, **dict(zip(used, values, strict=True)))
    return int(rows[-1][0]) if len(rows) == most else head.pass_bound


def _errors(lines: Mapping[Key, _Line]) -> dict[Key, tuple[str, str, datetime]]:
    """Code, message and time of the failures that these events tell."""
    if not lines:
        return {}
    found = Event.objects.filter(pk__in={line.pk for line in lines.values()}).order_by()
    fields = ("pk", "payload__result__error", KT("payload__code"), KT("payload__reason"))
    told = {pk: (error, code, reason) for pk, error, code, reason in found.values_list(*fields)}
    return {key: (*_error(*told[line.pk]), line.at) for key, line in lines.items()}


def _error(error: Any, code: str | None, reason: str | None) -> tuple[str, str]:
    """Of a result, of a refusal, or of what a person said."""
    if isinstance(error, dict):
        code, reason = str(error.get("code", "")), str(error.get("message", ""))
    message = reason or ""
    short = message if len(message) <= LONGEST_ERROR else f"{message[: LONGEST_ERROR - 1]}…"
    return (code or "OUTCOME_UNKNOWN")[:40], short


def _add_to_rows(
    model: type[Model], rows: Mapping[Key, Counter[str]], errors: Mapping[Key, tuple[str, str, datetime]]
) -> None:
    """Rows that are not there yet are made."""
    if not rows:
        return
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    values = []
    for key, sums in rows.items():
        row = dict(zip(_KEYS[model], key, strict=True)) | dict(sums)
        row |= dict(zip(_NEWEST, errors.get(key, ("", "", None)), strict=True))
        values.append([field.get_db_prep_save(row.get(field.attname, 0), connection) for field in fields])
    with connection.cursor() as cursor:
        cursor.executemany(_addition(model), values)


@cache
def _addition(model: type[Model]) -> str:
    table, keys = model._meta.db_table, _KEYS[model]
    columns = [str(field.column) for field in model._meta.concrete_fields if not field.primary_key]
    changes = ", ".join(f"{column} = {_changed(table, column)}" for column in columns if column not in keys)
    places = ", ".join(["%s"] * len(columns))
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608 (names come from models)
        f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"
    )


def _changed(table: str, column: str) -> str:
    if column in _NEWEST:
        return f"CASE WHEN excluded.last_error_at IS NULL THEN {table}.{column} ELSE excluded.{column} END"
    if column == _LARGEST:
        return f"CASE WHEN excluded.{column} > {table}.{column} THEN excluded.{column} ELSE {table}.{column} END"
    return f"{table}.{column} + excluded.{column}"
