"""Decisions at given times, stored as rows, and a naive recomputation of how long they took."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from django.contrib.auth.models import User

from agents.runs.models import Approval, ApprovalKind, ApprovalStatus, CallStatus, Run, ToolCall
from tests.world import World

APPROVED, EDITED, DENIED, ANSWERED = "approved", "edited", "denied", "answered"


@dataclass(frozen=True)
class Decided:
    """One decided card, as described by a test."""

    by: str
    at: datetime
    requested: datetime
    outcome: str = APPROVED
    call: int = 0
    tool: str = "data.updateRecord"
    bulk: uuid.UUID | None = None
    reason: str = ""
    ended: str = CallStatus.SUCCEEDED


@dataclass
class Desk:
    """Writes decided cards as rows of one run."""

    world: World
    run: Run
    calls: dict[int, ToolCall] = field(default_factory=dict)

    def add(self, decided: Iterable[Decided]) -> None:
        """Store the decisions in this order; decisions with the same `call` number are about one
        call."""
        every = list(decided)
        users = {user.username: user for user in User.objects.all()}
        for each in every:
            if each.call not in self.calls:
                self.calls[each.call] = self.world.call(
                    self.run, each.tool, level="write", status=each.ended
                )
        numbers: defaultdict[int, int] = defaultdict(int)
        rows = []
        for each in every:
            numbers[each.call] += 1
            rows.append(self._build(each, numbers[each.call], users[each.by]))
        Approval.objects.bulk_create(rows)

    def _build(self, decided: Decided, sequence: int, user: User) -> Approval:
        status = {
            APPROVED: ApprovalStatus.SUPERSEDED,
            EDITED: ApprovalStatus.SUPERSEDED,
            DENIED: ApprovalStatus.DENIED,
            ANSWERED: ApprovalStatus.ANSWERED,
        }[decided.outcome]
        columns: dict[str, Any] = {}
        if decided.outcome == APPROVED:
            columns = {"start_after": decided.at}
            if not Approval.objects.filter(
                tool_call=self.calls[decided.call], status="consumed"
            ).exists():
                status = ApprovalStatus.CONSUMED
                columns |= {"consumed_at": decided.at}
        return Approval(
            organization_id=self.run.organization_id,
            run=self.run,
            tool_call=self.calls[decided.call],
            sequence=sequence,
            kind=ApprovalKind.QUESTION if decided.outcome == ANSWERED else ApprovalKind.APPROVAL,
            status=status,
            level="write",
            sentence="Change a record",
            preview={},
            digest="0" * 64,
            shape="" if decided.call % 5 == 0 else f"{decided.tool} {sequence % 2}",
            requested_at=decided.requested,
            expires_at=decided.requested + timedelta(days=7),
            decided_by=user,
            decided_at=decided.at,
            reason=decided.reason,
            bulk_id=decided.bulk,
            **columns,
        )


@dataclass(frozen=True)
class Timed:
    """A decision with the time that it took; `counts` is True for only one row of a bulk decision
    per outcome."""

    decided: Decided
    ms: int
    counts: bool


def time_decisions(decided: Sequence[Decided]) -> list[Timed]:
    """Time every decision the slow way: one person after another."""
    timed = []
    for person in sorted({each.by for each in decided}):
        own = sorted((each for each in decided if each.by == person), key=lambda each: each.at)
        for position, each in enumerate(own):
            timed.append(_time_row(own, position) if each.bulk else _time_single(own, position))
    return timed


def _time_single(own: Sequence[Decided], position: int) -> Timed:
    each = own[position]
    before = own[position - 1] if position else None
    first = position
    if before is not None and before.outcome == EDITED and before.call == each.call:
        first -= 1
    start = max([own[first].requested, *([own[first - 1].at] if first else [])])
    return Timed(each, _ms(each.at - start), counts=True)


def _time_row(own: Sequence[Decided], position: int) -> Timed:
    """Time a row of a bulk decision; the last one of each outcome counts."""
    rows = [(number, each) for number, each in enumerate(own) if each.bulk == own[position].bulk]
    first = rows[0][0]
    start = max([min(each.requested for _, each in rows), *([own[first - 1].at] if first else [])])
    last = max(number for number, each in rows if each.outcome == own[position].outcome)
    return Timed(own[position], _ms((rows[-1][1].at - start) / len(rows)), counts=position == last)


def _ms(span: timedelta) -> int:
    return round(span / timedelta(milliseconds=1))


def median_ms(timed: Iterable[Timed]) -> int:
    return round(median(each.ms for each in timed))
