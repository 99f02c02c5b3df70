"""Limits over history: periods, an employee's earlier calls, and the facts that a verdict keeps.

The judged call itself is never among the earlier calls.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, Protocol

from tools.contract import canonical_json

_TIME = "at"


class Period(StrEnum):
    """A rolling period, which ends now."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"

    @property
    def length(self) -> timedelta:
        """The period as a timedelta: one minute, one hour or one day."""
        return timedelta(**{f"{self.value}s": 1})

    @property
    def words(self) -> str:
        """The period as a card names it."""
        return "today" if self is Period.DAY else f"this {self.value}"


class EarlierCalls(Protocol):
    """The calls of an employee that started, or that will start without another verdict."""

    @property
    def now(self) -> datetime:
        """The time at which the periods end."""

    def count_started(self, tool: str, period: Period) -> int:
        """Count the calls of this tool in the period."""

    def sum_started(self, tool: str, param: str, period: Period) -> Decimal:
        """Add up the amounts that this tool's calls in the period had in this param."""

    def find_unseen(self, tool: str, param: str, values: Sequence[Any]) -> int | None:
        """Return the index of the first value that was not in this param of any successful call of
        this tool in this run; None if all were seen."""

    def has_approved_read(self, tool: str, hosts: frozenset[str]) -> bool:
        """Return True if a person approved, in this run, calls of this tool that sent unseen text
        to each of these hosts or, if `hosts` is empty, a call that sent some
        without naming a host."""


class ToolHistory(Protocol):
    """The earlier calls, as the limits of one tool query them."""

    def count(self, period: Period) -> int:
        """Count the calls of the tool in the period."""

    def total(self, param: str, period: Period) -> Decimal:
        """Add up the amounts that the tool's calls in the period had in this param."""

    def find_unseen(self, after: "After", values: Sequence[Any]) -> int | None:
        """Return the index of the first value that was not in any earlier call; None if all were
        seen."""


@dataclass(frozen=True)
class After:
    """A requirement that another call has succeeded before.

    Attributes:
        tool, param: the earlier call's tool and param.
        same: the param of the judged call that must have the same value.
    """

    tool: str
    param: str
    same: str


@dataclass(frozen=True)
class LiveHistory:
    """The history as it is now; each fact is looked up once and kept in `used`, as JSON."""

    tool: str
    earlier: EarlierCalls
    used: dict[str, Any]

    def count(self, period: Period) -> int:
        return int(
            self._keep(_name_count(period), lambda: self.earlier.count_started(self.tool, period))
        )

    def total(self, param: str, period: Period) -> Decimal:
        kept = self._keep(
            _name_total(param, period),
            lambda: str(self.earlier.sum_started(self.tool, param, period)),
        )
        return Decimal(kept)

    def find_unseen(self, after: After, values: Sequence[Any]) -> int | None:
        found: int | None = self._keep(
            _name_after(after), lambda: self.earlier.find_unseen(after.tool, after.param, values)
        )
        return found

    def _keep(self, name: str, look_up: Callable[[], Any]) -> Any:
        self.used.setdefault(_TIME, self.earlier.now.isoformat())
        if name not in self.used:
            self.used[name] = look_up()
        return self.used[name]


@dataclass(frozen=True)
class StoredHistory:
    """The history that a verdict has used.

    Every method raises LookupError if the verdict did not use that fact.
    """

    kept: Mapping[str, Any]

    def count(self, period: Period) -> int:
        return int(self.kept[_name_count(period)])

    def total(self, param: str, period: Period) -> Decimal:
        return Decimal(self.kept[_name_total(param, period)])

    def find_unseen(self, after: After, values: Sequence[Any]) -> int | None:
        found: int | None = self.kept[_name_after(after)]
        return found


def _name_count(period: Period) -> str:
    return canonical_json(["count", period.value])


def _name_total(param: str, period: Period) -> str:
    return canonical_json(["sum", param, period.value])


def _name_after(after: After) -> str:
    return canonical_json(["after", after.tool, after.param, after.same])
