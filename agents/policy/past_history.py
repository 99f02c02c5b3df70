"""Rebuild the history before a recorded call from the calls that really started, to check proposed
limits over history.

As in the gate, a call is counted once it has started. A call that ran automatically is counted as
soon as it was recorded, so that a limit also covers the other calls of the same response. Approved
calls that had not started are not counted. The history ends when the judged call was recorded, even
if that call was judged again later.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

from django.db.models import Exists, Min, OuterRef, QuerySet
from django.utils import timezone

from agents.policy.recorded_calls import CallRow
from agents.runs.call_history import ParamText, read_values
from agents.runs.models import CallStatus, ToolCall
from tools.contract import canonical_json
from tools.toolbox.conditions import OVER_HISTORY, Condition, Rule
from tools.toolbox.history import After, Period, ToolHistory
from tools.toolbox.param_values import ABSENT, UNCOUNTABLE, add_amounts
from tools.toolbox.permissions import Permission
from tools.toolbox.recorded_facts import MissingFact

LONGEST = timedelta(days=1)
"""The longest period that a limit can have."""
Moment = tuple[datetime, int]
"""A time and the id of a call; the id orders calls that have the same time."""
_CALLS, _ERASED = "", "\0"
"""The keys under which calls, and calls with erased values, are counted; no param has these
names."""
_UNCOUNTABLE = "\1"
"""The beginning of a key that ends with a param's name. The key counts the calls whose param is not
a number."""
_EXACT = Context(prec=60)


class _StartedCall(NamedTuple):
    """A started call with its amounts: for each param, the amount that the call adds to the param's
    sum."""

    counted_from: Moment
    started_at: datetime
    amounts: Mapping[str, Fraction]


class _Timeline:
    """The values of one amount in an employee's calls to a tool, ready to be added up over any
    period."""

    def __init__(self, calls: Sequence[_StartedCall], name: str) -> None:
        entered = sorted((call.counted_from, call.amounts[name]) for call in calls)
        started = sorted((call.started_at, call.amounts[name]) for call in calls)
        self._entries = [moment for moment, _ in entered]
        self._starts = [time for time, _ in started]
        self._entered = list(accumulate((amount for _, amount in entered), initial=Fraction(0)))
        self._started = list(accumulate((amount for _, amount in started), initial=Fraction(0)))

    def add_up(self, end: Moment, length: timedelta) -> Fraction:
        """Add up the amounts of the calls that are counted by `end` and that started less than
        `length` before `end`."""
        before = self._entered[bisect_left(self._entries, end)]
        return before - self._started[bisect_right(self._starts, end[0] - length)]


class PastHistory:
    """The history of the tools that a policy draft limits. The calls of each tool are loaded once,
    on first use."""

    def __init__(
        self,
        organization_id: int,
        judged: QuerySet[ToolCall],
        limits: Iterable[tuple[str, Condition]],
    ) -> None:
        """Prepare the history before the `judged` calls."""
        self._organization_id, self._judged = organization_id, judged
        self._summed: dict[str, set[str]] = {}
        for tool, condition in limits:
            if condition.rule in OVER_HISTORY:
                params = self._summed.setdefault(tool, set())
                params.update({condition.param} if condition.rule is Rule.SUM else ())
        self._started: dict[str, dict[int, dict[str, _Timeline]]] = {}
        self._succeeded: dict[tuple[str, After], dict[int, list[tuple[Moment, str]]]] = {}

    def look_back(self, row: CallRow) -> ToolHistory | None:
        """Return the history before this call; None if the policy draft has no limit over history
        for its tool."""
        return _CallHistory(self, row) if row.tool in self._summed else None

    def list_timelines(self, row: CallRow) -> Mapping[str, _Timeline]:
        """Return the timelines for the call's employee and tool, by the name of the amount; empty
        if none of their calls has started."""
        if row.tool not in self._started:
            self._started[row.tool] = self._load_started(row.tool)
        return self._started[row.tool].get(row.employee_id, {})

    def is_summed(self, tool: str, param: str) -> bool:
        """Return True if the policy draft limits the sum of this param."""
        return param in self._summed[tool]

    def list_succeeded(self, row: CallRow, after: After) -> Sequence[tuple[Moment, str]]:
        """List the values in the successful calls, in the call's run, of the tool that has to be
        called first. Each value has the moment when its call ended."""
        key = (row.tool, after)
        if key not in self._succeeded:
            self._succeeded[key] = self._load_succeeded(row.tool, after)
        return self._succeeded[key].get(row.run_id, ())

    @cached_property
    def _oldest(self) -> datetime:
        """The time one second before the oldest judged call. The extra second makes sure that no
        call is missed, because SQLite compares times as texts, whose lengths differ."""
        oldest: datetime = (
            self._judged.aggregate(oldest=Min("created_at"))["oldest"] or timezone.now()
        )
        return oldest - timedelta(seconds=1)

    def _find_calls(self, tool: str) -> QuerySet[ToolCall]:
        return ToolCall.objects.filter(organization_id=self._organization_id, tool=tool).order_by()

    def _load_started(self, tool: str) -> dict[int, dict[str, _Timeline]]:
        params = sorted(self._summed[tool])
        calls = self._find_calls(tool).filter(started_at__gt=self._oldest - LONGEST)
        columns = (
            "run__employee_id",
            "pk",
            "created_at",
            "started_at",
            "judgment__verdict",
            "judgment__erased",
        )
        texts = [ParamText("params", param.split(".")[0]) for param in params]
        found: dict[int, list[_StartedCall]] = defaultdict(list)
        for values in calls.values_list(*columns, *texts).iterator():
            employee_id, pk, created_at, started_at, verdict, is_erased = values[: len(columns)]
            amounts = {_CALLS: Fraction(1), _ERASED: Fraction(bool(is_erased))}
            for param, text in zip(params, values[len(columns) :], strict=True):
                amount = add_amounts(read_values(text, param.split(".")))
                is_uncountable = amount == UNCOUNTABLE
                amounts[param] = Fraction(0 if is_uncountable else amount)
                amounts[_UNCOUNTABLE + param] = Fraction(is_uncountable)
            counted_from = created_at if verdict == Permission.AUTO else started_at
            found[employee_id].append(_StartedCall((counted_from, pk), started_at, amounts))
        return {
            employee_id: {name: _Timeline(calls, name) for name in calls[0].amounts}
            for employee_id, calls in found.items()
        }

    def _load_succeeded(self, tool: str, after: After) -> dict[int, list[tuple[Moment, str]]]:
        path = after.param.split(".")
        judged = self._find_calls(tool).filter(
            run_id=OuterRef("run_id"), created_at__gte=self._oldest
        )
        done = self._find_calls(after.tool).filter(Exists(judged), status=CallStatus.SUCCEEDED)
        columns = ("run_id", "finished_at", "pk", ParamText("params", path[0]))
        found: dict[int, list[tuple[Moment, str]]] = defaultdict(list)
        for run_id, finished_at, pk, text in done.values_list(*columns).iterator():
            values = (value for value in read_values(text, path) if value is not ABSENT)
            found[run_id] += [((finished_at, pk), canonical_json(value)) for value in values]
        return dict(found)


@dataclass(frozen=True)
class _CallHistory:
    """The calls before one recorded call; see `ToolHistory`."""

    past: PastHistory
    row: CallRow

    def count(self, period: Period) -> int:
        """Count the calls of the tool in the period that ends when the call was recorded."""
        return int(self._add_up(_CALLS, period))

    def total(self, param: str, period: Period) -> Decimal:
        """Add up a param over the calls of the tool in this period.

        Raises:
            MissingFact: the policy draft has no limit on this sum, or the amounts of some calls
                were erased.
        """
        if not self.past.is_summed(self.row.tool, param) or self._add_up(_ERASED, period):
            raise MissingFact(f"sum of {param}")
        if self._add_up(_UNCOUNTABLE + param, period):
            return UNCOUNTABLE
        found = self._add_up(param, period)
        return _EXACT.divide(Decimal(found.numerator), Decimal(found.denominator))

    def find_unseen(self, after: After, values: Sequence[Any]) -> int | None:
        """Return the index of the first value that did not occur in any earlier successful call in
        the run; None if all values did."""
        done = self.past.list_succeeded(self.row, after)
        seen = {value for moment, value in done if moment < self._end}
        return next(
            (number for number, value in enumerate(values) if canonical_json(value) not in seen),
            None,
        )

    @property
    def _end(self) -> Moment:
        return self.row.created_at, self.row.pk

    def _add_up(self, name: str, period: Period) -> Fraction:
        timeline = self.past.list_timelines(self.row).get(name)
        return timeline.add_up(self._end, period.length) if timeline else Fraction(0)
