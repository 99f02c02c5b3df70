"""Count the earlier calls of a run's employee, for limits over history, and lock these counts.

A call is counted once it has started, even if a person approved it. A call that will start without
another verdict is counted too.
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
from agents.runs.models import (
    APPROVED_STATES,
    ENDED,
    CallStatus,
    Run,
    RunStatus,
    ToolCall,
)
from tools.contract import canonical_json
from tools.toolbox.history import Period
from tools.toolbox.param_values import ABSENT, add_amounts, find_values
from tools.toolbox.permissions import CauseKind


@dataclass(frozen=True)
class Occasion:
    """The circumstances in which a call is judged.

    Attributes:
        now: the end of the counted periods; the database's time if None.
        call_id: the judged call itself, if it is already stored; it is not counted.
        beside: other calls that are not stored yet and will start without approval.
        is_start: True if the judged call is approved and about to start. In that case, the only
            waiting calls that are counted are those that need no approval.
    """

    now: datetime | None = None
    call_id: int | None = None
    beside: Sequence[ToolCall] = ()
    is_start: bool = False


NOW = Occasion()
_OPEN = [status for status in RunStatus if status not in ENDED]


@dataclass(frozen=True)
class EmployeeCalls:
    """The earlier calls of a run's employee, in all the employee's runs; `find_unseen` considers
    only the calls of `run`."""

    run: Run
    occasion: Occasion = NOW

    @cached_property
    def now(self) -> datetime:
        """The time at which the periods end, the same for every count."""
        return self.occasion.now or _fetch_time(self.run.organization_id)

    def count_started(self, tool: str, period: Period) -> int:
        """Count the calls of this tool that started in the period or will start without another
        verdict."""
        stored = sum(calls.count() for calls in self._find_counted(tool, period))
        return stored + len(self._list_beside(tool))

    def sum_started(self, tool: str, param: str, period: Period) -> Decimal:
        """Add up the amounts in this param over the calls that `count_started` counts."""
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
        """Return the index of the first value that did not occur in any successful call of the tool
        in this run; None if all values did."""
        done = self._of_organization(tool).filter(run_id=self.run.pk, status=CallStatus.SUCCEEDED)
        found = _read_values(done, param.split("."))
        seen = {canonical_json(value) for value in found if value is not ABSENT}
        return next(
            (number for number, value in enumerate(values) if canonical_json(value) not in seen),
            None,
        )

    def has_approved_read(self, tool: str, hosts: frozenset[str]) -> bool:
        """Return True if a person approved calls of this tool in this run that sent unseen text to
        each of these hosts. If there are no hosts, one approved call that sent some
        without naming a host is enough."""
        approved = self._of_organization(tool).filter(
            run_id=self.run.pk,
            approvals__status__in=APPROVED_STATES,
            approvals__standing_grant=None,
        )
        judgments = approved.exclude(pk=self.occasion.call_id or 0).values_list(
            "judgment", flat=True
        )
        found = [
            frozenset(judgment["facts"].get("hosts", ()))
            for judgment in judgments
            if judgment is not None
            and any(kind == CauseKind.UNSEEN_TEXT for kind, *_ in judgment.get("causes", ()))
        ]
        return hosts <= frozenset().union(*found) if hosts else frozenset() in found

    def _find_counted(
        self, tool: str, period: Period
    ) -> tuple[QuerySet[ToolCall], QuerySet[ToolCall]]:
        """Find the calls that started in the period, and the calls that will start without another
        verdict.

        Each of the two queries uses an index: one on the start of calls, one on open runs.
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
    """Lock the employee's grants of these tools until the transaction ends, so that no other
    transaction counts calls of these tools."""
    grants = Grant.objects.filter(employee_id=employee_id, tool__in=tools).order_by("pk")
    list(grants.select_for_update(no_key=True).values_list("pk"))


class ParamText(Func):
    """One param as JSON text; on SQLite, a `KeyTransform` would not distinguish the text "5" from
    the number 5."""

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
    """Yield the values at the path, whose first param is given as JSON in `text`."""
    yield from find_values({path[0]: json.loads(text or "null")}, path)


def _fetch_time(organization_id: int) -> datetime:
    """Return the database's time."""
    time = ExpressionWrapper(Now(), output_field=DateTimeField())
    found: datetime = Organization.objects.values_list(time, flat=True).get(pk=organization_id)
    return found
