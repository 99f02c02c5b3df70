"""Replay: judge recorded calls again by their own snapshots and facts, and report every verdict
that is different now.

A difference means that a record was changed, or that this version of the gate judges differently.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import django
from django.db import connections
from django.db.models import Max, Min

from agents.policy.recorded_calls import (
    CallFilter,
    Judged,
    RecordedJudge,
    ReplayOutcome,
    read_calls,
)
from agents.policy.recorded_preapprovals import PreapprovalChecker, find_granted
from agents.policy.recorded_rulings import CheckedApproval, check_ruling, read_ruled

CALLS_AT_ONCE = 20_000
"""The size of one part of a replay, as a number of call ids. A process takes one part at a time."""
MAX_EXPLAINED = 5
"""The maximum number of reasons that one part lists for calls that could not be replayed."""


@dataclass
class ReplayReport:
    """The outcome of one part of a replay.

    Attributes:
        counts: the number of calls by outcome: `equal`, `different`, or a `ReplayOutcome`.
        preapprovals: the number of recorded approvals by standing grants that are `equal` or
            `different`.
        rulings: the number of approvals under approval rules that are `equal` or `different`.
        differences: one line for each call or approval that differs.
        unreadable: at most five reasons why calls could not be replayed, each with the id of a
            call.
    """

    counts: Counter[str] = field(default_factory=Counter)
    preapprovals: Counter[str] = field(default_factory=Counter)
    rulings: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    unreadable: dict[str, int] = field(default_factory=dict)

    def add(self, call_id: int, judged: Judged) -> None:
        """Count a replayed call, and add its differences to the list."""
        if judged.kind is ReplayOutcome.UNKNOWN or judged.differences:
            self.counts["different"] += 1
            self.differences.append(f"call {call_id}: {'; '.join(judged.differences)}")
        elif judged.kind is ReplayOutcome.JUDGED:
            self.counts["equal"] += 1
        else:
            self.counts[judged.kind.value] += 1
            is_known = judged.reason in self.unreadable or len(self.unreadable) < MAX_EXPLAINED
            if judged.kind in (ReplayOutcome.UNREADABLE, ReplayOutcome.MISSING) and is_known:
                self.unreadable.setdefault(judged.reason, call_id)

    def add_preapproval(self, call_id: int, checked: CheckedApproval) -> None:
        """Count a recorded approval by a standing grant, and add its difference to the list."""
        self._add_checked(self.preapprovals, call_id, checked)

    def add_ruling(self, call_id: int, checked: CheckedApproval) -> None:
        """Count an approval under approval rules, and add its difference to the list."""
        self._add_checked(self.rulings, call_id, checked)

    def _add_checked(self, counts: Counter[str], call_id: int, checked: CheckedApproval) -> None:
        counts["equal" if checked.problem is None else "different"] += 1
        if checked.problem is not None:
            self.differences.append(f"call {call_id}: {checked.problem}")


def find_bounds(chosen: CallFilter, limit: int | None) -> CallFilter | None:
    """Limit the filter to ids that exist, and to the newest `limit` calls if a limit is given.
    Return None if there are no calls."""
    calls = chosen.find()
    found = calls.order_by().aggregate(first=Min("pk"), last=Max("pk"))
    if found["first"] is None:
        return None
    first = found["first"]
    if limit is not None:
        newest = calls.reverse().values_list("pk", flat=True)[limit - 1 : limit]
        first = next(iter(newest), first)
    return replace(chosen, first_id=first, last_id=found["last"])


def replay(chosen: CallFilter, processes: int = 1) -> Iterator[ReplayReport]:
    """Replay the calls of a filter from `find_bounds` in parts, and yield a report on each part.
    Memory use stays constant.

    Args:
        processes: the number of processes that share the work; with 1, this process does it all.
    """
    assert chosen.last_id is not None, "find_bounds gives the last id"
    starts = range(chosen.first_id, chosen.last_id + 1, CALLS_AT_ONCE)
    parts = [
        replace(chosen, first_id=start, last_id=min(start + CALLS_AT_ONCE - 1, chosen.last_id))
        for start in starts
    ]
    if processes == 1 or len(parts) == 1:
        judge = RecordedJudge()
        yield from (_replay_part(part, judge) for part in parts)
        return
    connections.close_all()
    with multiprocessing.get_context("spawn").Pool(processes, initializer=_start_process) as pool:
        yield from pool.imap_unordered(_replay_in_process, parts)


_judge = RecordedJudge()
"""The judge of a worker process. Its caches serve all parts that the process takes."""


def _start_process() -> None:
    django.setup()


def _replay_in_process(part: CallFilter) -> ReplayReport:
    return _replay_part(part, _judge)


def _replay_part(part: CallFilter, judge: RecordedJudge) -> ReplayReport:
    report, granted, preapprovals = ReplayReport(), find_granted(part), PreapprovalChecker()
    for row in read_calls(part):
        report.add(row.pk, judge.judge(row))
        if (checked := preapprovals.check(row, granted.get(row.pk))) is not None:
            report.add_preapproval(row.pk, checked)
    for approval in read_ruled(part):
        if (checked := check_ruling(approval)) is not None:
            report.add_ruling(approval.call_id, checked)
    return report
