"""Checks that need constant observation: ended rows do not change, calls do not outlive their
deadline, and every due run gets a driver."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from django.db.models import Q
from django.db.models.functions import Now

from agents.runs.models import (
    TERMINAL_CALLS,
    Approval,
    ApprovalStatus,
    CallStatus,
    Run,
    RunStatus,
    ToolCall,
)

LONGEST_UNDRIVEN_S = 30.0
BEYOND_DEADLINE = timedelta(seconds=45)
_OPEN_CARDS = (ApprovalStatus.PENDING, ApprovalStatus.APPROVED)


class Watch:
    """Collects violations of the invariants I5, I8 and I10. Call `look` often, and finally
    `faults`, which lists them."""

    def __init__(self) -> None:
        self.longest_undriven_s = 0.0
        self._calls: dict[int, Any] = {}
        self._cards: dict[int, Any] = {}
        self._waiting: dict[tuple[int, int], float] = {}
        self._late: set[int] = set()

    def look(self, a_worker_is_free: bool) -> None:
        for rows, seen in ((_ended_calls(), self._calls), (_ended_cards(), self._cards)):
            for pk, *values in rows:
                seen.setdefault(pk, values)
        late = ToolCall.objects.filter(
            status=CallStatus.EXECUTING, deadline_at__lt=Now() - BEYOND_DEADLINE
        )
        self._late.update(late.values_list("pk", flat=True))
        self._look_at_queue(a_worker_is_free)

    def faults(self) -> list[str]:
        """List the violations, after a last look at the ended rows."""
        found = [f"I8: call {pk} executed beyond its deadline" for pk in self._late]
        if self.longest_undriven_s > LONGEST_UNDRIVEN_S:
            found.append(f"I10: a due run stayed unclaimed for {self.longest_undriven_s:.0f} s")
        for what, rows, seen in (
            ("call", _ended_calls(), self._calls),
            ("approval", _ended_cards(), self._cards),
        ):
            now = {pk: values for pk, *values in rows}
            found += [
                f"I5: {what} {pk} was {was}, is {now.get(pk)}"
                for pk, was in seen.items()
                if now.get(pk) != was
            ]
        return found

    def _look_at_queue(self, a_worker_is_free: bool) -> None:
        due = Q(next_wake_at=None) | Q(next_wake_at__lte=Now())
        queued = Run.objects.filter(due, status=RunStatus.QUEUED).values_list("pk", "lease_epoch")
        now = time.monotonic()
        self._waiting = {
            key: self._waiting.get(key, now) if a_worker_is_free else now for key in queued
        }
        waited = [now - since for since in self._waiting.values()]
        self.longest_undriven_s = max([self.longest_undriven_s, *waited])


def _ended_calls() -> list[tuple[Any, ...]]:
    ended = ToolCall.objects.filter(status__in=TERMINAL_CALLS)
    return list(ended.values_list("pk", "status", "finished_at", "content", "attempts"))


def _ended_cards() -> list[tuple[Any, ...]]:
    ended = Approval.objects.exclude(status__in=_OPEN_CARDS)
    return list(ended.values_list("pk", "status", "decided_by", "decided_at", "digest"))
