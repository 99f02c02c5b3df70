"""The outcome of a simulation, as its page shows it: counts before and after, and calls with a
different verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agents.policy.recorded_calls import PREAPPROVED, ReplayOutcome
from agents.policy.simulation import SimulationReport
from tools.contract.outside_text import OutsideText

WORDS = {
    "auto": "runs automatically",
    "ask": "needs approval",
    "forbidden": "is refused",
    PREAPPROVED: "is approved by a standing grant",
}
_SKIPPED = {
    ReplayOutcome.UNKNOWN.value: "Verdict unknown, because the policy draft needs a fact that was not recorded",
    ReplayOutcome.PRUNED.value: "No recorded verdict",
    ReplayOutcome.MISSING.value: "Rules no longer stored",
    ReplayOutcome.UNREADABLE.value: "Damaged record",
    ReplayOutcome.ERASED.value: "Erased",
}
REMOVED = "a removed employee"
Pairs = Mapping[tuple[str, str], int]


@dataclass(frozen=True)
class VerdictCounts:
    """The number of calls with each verdict, before and after, for one tool, one employee, or all
    calls."""

    label: str
    before: Mapping[str, int]
    after: Mapping[str, int]
    changed: int

    @property
    def cells(self) -> list[tuple[int, int]]:
        """The numbers before and after, for each verdict of `COLUMNS`."""
        return [(self.before.get(name, 0), self._get_after(name)) for name in COLUMNS]

    def _get_after(self, name: str) -> int:
        return self.after.get(name, 0) + (self.after.get(PREAPPROVED, 0) if name == "auto" else 0)


COLUMNS = ("auto", "ask", "forbidden")


@dataclass(frozen=True)
class ChangedLine:
    """One call with a different verdict; `warning` is set if a person denied it and it would run
    automatically."""

    call_id: int
    run_id: int
    tool: str
    employee: str
    before: str
    after: str
    reason: str
    was_denied: bool
    warning: bool


def count_pairs(pairs: Pairs, label: str = "All calls") -> VerdictCounts:
    """Count calls by their verdicts before and after."""
    before: dict[str, int] = {}
    after: dict[str, int] = {}
    for (old, new), count in pairs.items():
        before[old] = before.get(old, 0) + count
        after[new] = after.get(new, 0) + count
    return VerdictCounts(
        label, before, after, sum(count for (old, new), count in pairs.items() if old != new)
    )


def build_tables(
    report: SimulationReport, titles: Mapping[str, str], employees: Mapping[int, str]
) -> list[tuple[str, list[VerdictCounts]]]:
    """Build the tables: all calls, then by tool and by employee, sorted by the number of
    changes."""
    by_tool = [
        count_pairs(pairs, titles.get(tool, OutsideText(tool)))
        for tool, pairs in report.by_tool.items()
    ]
    by_employee = [
        count_pairs(pairs, employees.get(pk, REMOVED)) for pk, pairs in report.by_employee.items()
    ]
    return [
        ("All", [count_pairs(report.verdicts)]),
        ("Tool", _sort(by_tool)),
        ("Employee", _sort(by_employee)),
    ]


def _sort(rows: list[VerdictCounts]) -> list[VerdictCounts]:
    return sorted(rows, key=lambda row: (-row.changed, row.label.casefold()))


def describe_changed(
    report: SimulationReport, titles: Mapping[str, str], employees: Mapping[int, str]
) -> list[ChangedLine]:
    """Describe the listed calls with a different verdict."""
    return [
        ChangedLine(
            call_id=call.row.pk,
            run_id=call.row.run_id,
            tool=titles.get(call.row.tool, OutsideText(call.row.tool)),
            employee=employees.get(call.row.employee_id, REMOVED),
            before=WORDS.get(call.judged.before, call.judged.before),
            after=WORDS.get(call.judged.after, call.judged.after),
            reason=call.judged.reason,
            was_denied=call.was_denied,
            warning=call.is_alarming,
        )
        for call in report.listed
    ]


def describe_skipped(counts: Mapping[str, int]) -> list[tuple[int, str]]:
    """Return the number of calls that were not judged, by the reason in words."""
    return [(counts[kind], words) for kind, words in _SKIPPED.items() if counts.get(kind)]
