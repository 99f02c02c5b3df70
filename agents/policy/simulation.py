"""The simulator: judge recorded calls as if a policy draft had been in force. Nothing is
changed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from agents.policy.changed_rules import ChangedRules
from agents.policy.policy_drafts import PolicyChange
from agents.policy.recorded_calls import (
    PREAPPROVED,
    CallFilter,
    CallRow,
    Judged,
    RecordedJudge,
    ReplayOutcome,
    read_calls,
)
from agents.runs.models import CallStatus

MAX_LISTED = 200
"""The maximum number of changed calls that a report lists; further calls are only counted."""
RUNS_ALONE = ("auto", PREAPPROVED)


@dataclass(frozen=True)
class ChangedCall:
    """A call whose verdict a policy draft would have changed.

    Attributes:
        was_denied: True if a person denied the call.
        is_alarming: True if a person denied the call, but it would have run automatically.
    """

    row: CallRow
    judged: Judged

    @property
    def was_denied(self) -> bool:
        return self.row.status == CallStatus.DENIED

    @property
    def is_alarming(self) -> bool:
        return self.was_denied and self.judged.after in RUNS_ALONE


@dataclass
class SimulationReport:
    """The outcome of a simulation.

    Attributes:
        verdicts: the number of calls for each pair of a call's real verdict and its verdict under
            the policy draft.
        by_tool, by_employee: the same numbers for each tool, and for each employee's id.
        skipped: the number of calls that could not be judged, by reason.
        unknown: for each unrecorded fact, the number of calls for which the policy draft needs it.
        alarming: the newest changed calls that are alarming.
        changed: the newest other changed calls.
        alarming_count: the number of all alarming calls.
    """

    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    by_tool: dict[str, Counter[tuple[str, str]]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    by_employee: dict[int, Counter[tuple[str, str]]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    skipped: Counter[ReplayOutcome] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    alarming: list[ChangedCall] = field(default_factory=list)
    changed: list[ChangedCall] = field(default_factory=list)
    alarming_count: int = 0

    @property
    def total(self) -> int:
        return self.verdicts.total() + self.skipped.total()

    @property
    def changed_count(self) -> int:
        return sum(count for (before, after), count in self.verdicts.items() if before != after)

    @property
    def listed(self) -> list[ChangedCall]:
        """The changed calls to list, with the alarming ones first."""
        return [*self.alarming, *self.changed][:MAX_LISTED]

    def add(self, row: CallRow, judged: Judged) -> None:
        """Count a judged call, and list it if its verdict changed."""
        if judged.kind is not ReplayOutcome.JUDGED:
            self.skipped[judged.kind] += 1
            if judged.kind is ReplayOutcome.UNKNOWN:
                self.unknown[judged.reason] += 1
            return
        pair = (judged.before, judged.after)
        for counted in (self.verdicts, self.by_tool[row.tool], self.by_employee[row.employee_id]):
            counted[pair] += 1
        if judged.before != judged.after:
            self._list(ChangedCall(row, judged))

    def _list(self, call: ChangedCall) -> None:
        self.alarming_count += call.is_alarming
        listed = self.alarming if call.is_alarming else self.changed
        if len(listed) < MAX_LISTED:
            listed.append(call)


def simulate(organization_id: int, changes: Iterable[PolicyChange], limit: int) -> SimulationReport:
    """Judge the organization's newest recorded calls by their own rules with the changes of a
    policy draft.

    Args:
        limit: the maximum number of calls to judge.
    """
    report, chosen = SimulationReport(), CallFilter(organization_id)
    judge = RecordedJudge(ChangedRules(organization_id, changes, chosen.find().reverse()[:limit]))
    for row in islice(read_calls(chosen, newest_first=True), limit):
        report.add(row, judge.judge(row))
    return report
