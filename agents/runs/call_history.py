"""The earlier calls of a run's employee, which limits over history count, and the lock under which
they are counted.

A call counts once it has started, whoever approved it. A call that will start without another
verdict counts too.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

from django.db.models import (
    DateTimeField,
    Exists,
    ExpressionWrapper,
    F,
    Func,
    OuterRef,
    QuerySet,
    TextField,
)
from django.db.models.functions import Now
from django.db.models.sql.compiler import SQLCompiler

from agents.accounts.models import Organization
from agents.employees.models import Grant
from agents.runs.models import ENDED, CallStatus, Run, RunStatus, ToolCall
from tools.contract import canonical_json
from tools.toolbox.history import Period
from tools.toolbox.param_values import ABSENT, add_amounts, find_values


@dataclass(frozen=True)
class Occasion:
    """The occasion on which a call is judged.

    Attributes:
        now: the end of the periods; the database's time if None.
        call_id: the judged call, if it is stored already; it is not counted.
        beside: calls that are not stored yet and will start without approval.
        is_start: the call was promised its start; it yields only to calls that no longer need
            approval.
    """

    now: datetime | None = None
    call_id: int | None = None
    beside: Sequence[ToolCall] = ()
    is_start: bool = False


NOW = Occasion()
_OPEN = [status for status in RunStatus if status not in ENDED]


@dataclass(frozen=True)
class EmployeeCalls:
    """The calls of the run's employee, of all its runs; those of this run alone for a call that
    must come first."""

    run: Run
    occasion: Occasion = NOW

    @cached_property
    def now(self) -> datetime:
        """The time at which the periods end, the same for every count."""
        return self.occasion.now or _fetch_time(self.run.organization_id)

    def count_started(self, tool: str, period: Period) -> int:
        """Count the calls of this tool that started in the period, or will start."""
        stored = sum(calls.count() for calls in self._find_counted(tool, period))
        return stored + len(self._list_beside(tool))

    def sum_started(self, tool: str, param: str, period: Period) -> Decimal:
        """Add up the amounts in this param of the same calls."""
        path = param.split(".")
        beside = (
            value for call in self._list_beside(tool) for value in find_values(call.params, path)
        )
        stored = (
            value
            for calls in self._find_counted(tool, period)
            for value in _read_values(calls, path)
        )
        return add_amounts([*beside, *stored])

    def find_unseen(self, tool: str, param: str, values: Sequence[Any]) -> int | None:
        """Return the position of the first value that no successful call of the tool in this run
        had."""
        done = self._of_organization(tool).filter(run_id=self.run.pk, status=CallStatus.SUCCEEDED)
        found = _read_values(done, param.split("."))
        seen = {canonical_json(value) for value in found if value is not ABSENT}
        return next(
            (number for number, value in enumerate(values) if canonical_json(value) not in seen),
            None,
        )

    def _find_counted(
        self, tool: str, period: Period
    ) -> tuple[QuerySet[ToolCall], QuerySet[ToolCall]]:
        """Find the calls that started in the period, and those that will start.

        Each condition has an index: the calls' starts, and the open runs.
        """
        calls, runs = (
            self._of_organization(tool),
            Run.objects.filter(employee_id=self.run.employee_id).order_by(),
        )
        if self.occasion.call_id is not None:
            calls = calls.exclude(pk=self.occasion.call_id)
        since = self.now - period.length
        started = calls.filter(Exists(runs.filter(pk=OuterRef("run_id"))), started_at__gt=since)
        open_runs = runs.filter(organization_id=self.run.organization_id, status__in=_OPEN)
        promised = (
            [CallStatus.READY]
            if self.occasion.is_start
            else [CallStatus.READY, CallStatus.APPROVED]
        )
        waiting = calls.filter(
            run_id__in=open_runs.values("pk"), status__in=promised, started_at__isnull=True
        )
        return started, waiting

    def _of_organization(self, tool: str) -> QuerySet[ToolCall]:
        return ToolCall.objects.filter(
            organization_id=self.run.organization_id, tool=tool
        ).order_by()

    def _list_beside(self, tool: str) -> list[ToolCall]:
        return [call for call in self.occasion.beside if call.tool == tool]


def lock_counts(employee_id: int, tools: Collection[str]) -> None:
    """Lock the employee's grants of these tools until the transaction ends, so that no one else
    counts their calls."""
    grants = Grant.objects.filter(employee_id=employee_id, tool__in=tools).order_by("pk")
    list(grants.select_for_update(no_key=True).values_list("pk"))


class ParamText(Func):
    """One param as JSON text; a `KeyTransform` returns the text "5" and the number 5 alike on
    SQLite."""

    output_field = TextField()

    def __init__(self, column: str, name: str) -> None:
        super().__init__(F(column))
        self._name = name

    def as_postgresql(
        self, compiler: SQLCompiler, *_: Any, **__: Any
    ) -> tuple[str, tuple[str | int, ...]]:
        column, params = compiler.compile(self.source_expressions[0])
        return f"({column} -> %s)::text", (*params, self._name)

    def as_sqlite(
        self, compiler: SQLCompiler, *_: Any, **__: Any
    ) -> tuple[str, tuple[str | int, ...]]:
        column, params = compiler.compile(self.source_expressions[0])
        return f"({column} -> %s)", (*params, f"$.{json.dumps(self._name)}")


def _read_values(calls: QuerySet[ToolCall], path: list[str]) -> Iterator[Any]:
    """Yield the values at the path in the params of these calls, without loading the other
    params."""
    for text in calls.values_list(ParamText("params", path[0]), flat=True).iterator():
        yield from read_values(text, path)


def read_values(text: str | None, path: list[str]) -> Iterator[Any]:
    """Yield the values at the path; `text` is its first param as JSON."""
    yield from find_values({path[0]: json.loads(text or "null")}, path)


def _fetch_time(organization_id: int) -> datetime:
    """Return the database's time."""
    time = ExpressionWrapper(Now(), output_field=DateTimeField())
    found: datetime = Organization.objects.values_list(time, flat=True).get(pk=organization_id)
    return found
