"""The permissions that the test set, now and at the time when a call was requested or started.

Changes are made under the run's lock, which the product holds too when it records and starts calls.
So each change falls between two of these moments, and every call is known to be before or after the
change.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db import connection

from agents.runs.models import Run, ToolCall
from tests.tools.toolbox.configurations import Arguments, Configuration, Expected, expected
from tools.contract import Level, Tool
from tools.toolbox import Condition, Grants, Policy

LEVELS = ["read", "draft", "write", "destructive"]


@dataclass
class Truth:
    """The current permissions; `mode` is the run's own, even if the employee's mode changes
    later."""

    granted: dict[str, tuple[str, tuple[Condition, ...]]] = field(default_factory=dict)
    raised: dict[str, str] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)
    capabilities: list[str] = field(default_factory=list)
    features: list[str] = field(default_factory=list)
    mode: str = "general"
    halted: bool = False

    def grants(self, stopped_by: str) -> Grants:
        levels = {}
        for tool, (own, _) in self.granted.items():
            highest = max(own or "read", self.raised.get(tool, "read"), key=LEVELS.index)
            levels[tool] = Level(highest)
        return Grants(
            tools=frozenset(self.granted),
            mode=self.mode,
            capabilities=frozenset(self.capabilities),
            features=frozenset(self.features),
            raised=levels,
            conditions={tool: conditions for tool, (_, conditions) in self.granted.items()},
            stopped=dict.fromkeys(self.stopped & self.granted.keys(), stopped_by),
        )


@dataclass(frozen=True)
class Era:
    """The permissions between two changes; `halted` means that nothing may start, even if
    permitted."""

    grants: Grants
    policy: Policy
    halted: bool

    def says(self, tool: Tool | None, arguments: Arguments) -> Expected:
        """Return the documented verdict on this call."""
        return expected(Configuration(tool, arguments, self.grants, self.policy))


@dataclass(frozen=True)
class _Past:
    """A past era, with the run's calls that existed or had started by its end."""

    era: Era
    recorded: frozenset[int]
    started: frozenset[int]


class Eras:
    """The eras of one run, the newest last."""

    def __init__(self, first: Era) -> None:
        self._past: list[_Past] = []
        self._now = first

    def __len__(self) -> int:
        return len(self._past) + 1

    def turn(self, run_id: int, now: Era) -> None:
        """Begin another era; call it under the run's lock."""
        calls = dict(ToolCall.objects.filter(run_id=run_id).values_list("pk", "attempts"))
        started = frozenset(pk for pk, attempts in calls.items() if attempts)
        self._past.append(_Past(self._now, frozenset(calls), started))
        self._now = now

    def at_record(self, call_id: int) -> Era:
        """Return the era in which the call was recorded."""
        return next((past.era for past in self._past if call_id in past.recorded), self._now)

    def at_start(self, call_id: int) -> Era:
        """Return the era in which the call started; the newest era if it has not started."""
        return next((past.era for past in self._past if call_id in past.started), self._now)

    def before_record(self, call_id: int) -> list[Era]:
        """Return the eras that had ended when the call was recorded."""
        return [past.era for past in self._past[: self._place_of(call_id)]]

    def since_record(self, call_id: int) -> list[Era]:
        """Return the eras since the call was recorded."""
        return [*(past.era for past in self._past[self._place_of(call_id) :]), self._now]

    def _place_of(self, call_id: int) -> int:
        return next(
            (place for place, past in enumerate(self._past) if call_id in past.recorded),
            len(self._past),
        )


def lock(run_id: int) -> None:
    """Lock the run, so that no call is recorded or started until this transaction has ended."""
    assert connection.in_atomic_block
    Run.objects.select_for_update(no_key=True).get(pk=run_id)
