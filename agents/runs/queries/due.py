"""The compiled queries for runs, calls and schedules that are due or lost, and the limit on how
long runs wait."""

from datetime import datetime
from functools import partial
from typing import NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from agents.platform.bounded_waits import BoundedWait
from agents.platform.queries.compiled import CompiledQuery, compile_ids
from agents.runs.engine.timing import timing
from agents.runs.models import (
    ENDED,
    IS_UNFINISHED,
    PARKED,
    TERMINAL_CALLS,
    Approval,
    ApprovalStatus,
    CallStatus,
    Event,
    EventType,
    Origin,
    Run,
    RunStatus,
    ToolCall,
    WithheldBulk,
)
from tools.schedules.models import Schedule

MAX_SEEN_BY_A_WORKER = 1_000
MAX_LEASES = 10_000
_ALIVE = (RunStatus.QUEUED, RunStatus.RUNNING, *PARKED)


def _select_due_runs() -> QuerySet[Run]:
    """Select queued runs that are due and not stopped."""
    return Run.objects.filter(
        Q(next_wake_at=None) | Q(next_wake_at__lte=Now()),
        Q(stopped_because="") | Q(cancel_requested_at__isnull=False),
        status=RunStatus.QUEUED,
    ).order_by("pk")


def _select_unhinted_runs() -> QuerySet[Run]:
    """Select due runs without a recent hint; a hint in the future is ignored, because the clock has
    been set back since then."""
    is_forgotten = (
        Q(hinted_at=None) | Q(hinted_at__lt=Now() - timing().hint_interval) | Q(hinted_at__gt=Now())
    )
    return _select_due_runs().filter(is_forgotten)


def _select_lost_leases() -> QuerySet[Run]:
    return Run.objects.filter(status=RunStatus.RUNNING, lease_expires_at__lt=Now())


def _select_overdue_runs() -> QuerySet[Run]:
    open_ = Run.objects.filter(IS_UNFINISHED, status__in=(RunStatus.QUEUED, RunStatus.WAITING))
    return open_.filter(deadline_at__lte=Now())


def _select_startable_runs() -> QuerySet[Run]:
    """Select runs with an approved card whose grace period is over. If the card waits for an
    earlier call, perhaps in the delegating run, that call must have ended."""
    due = Approval.objects.filter(
        Q(after=None) | Q(after__status__in=TERMINAL_CALLS),
        status=ApprovalStatus.APPROVED,
        start_after__lte=Now(),
    )
    startable = due.filter(~WithheldBulk.find_for_approval()).order_by().values("run_id")
    return Run.objects.filter(status__in=PARKED, pk__in=startable).exclude(origin=Origin.ASK)


def _select_runs_with_wrong_stop() -> QuerySet[Run]:
    """Select unfinished runs whose `stopped_because` does not yet show that a stop began or
    ended."""
    is_stopped = Q(organization__stopped_at__isnull=False) | Q(employee__stopped_at__isnull=False)
    knows = ~Q(stopped_because="")
    return Run.objects.filter(IS_UNFINISHED, is_stopped & ~knows | ~is_stopped & knows).order_by(
        "pk"
    )


def _select_answered_calls() -> QuerySet[ToolCall]:
    """Select suspended calls whose child run has ended, but whose result has not been collected
    yet."""
    open_ = ToolCall.objects.exclude(status__in=TERMINAL_CALLS).filter(status=CallStatus.SUSPENDED)
    return open_.filter(child_run__status__in=ENDED).order_by("run_id").distinct()


def _select_orphaned_runs(status: RunStatus) -> QuerySet[Run]:
    """Select runs of this unfinished status whose parent call was cancelled. The statuses are
    queried separately, because each of them has an index.

    A run that a person resumed after its end is left out, because its parent no longer waits for it
    anyway.
    """
    had_ended = Event.objects.filter(run_id=OuterRef("pk"), type=EventType.RUN_FINISHED)
    rows = Run.objects.filter(
        ~Exists(had_ended), parent_call__status=CallStatus.CANCELLED, cancel_requested_at=None
    )
    # Every parked run has an open call, so this condition does not exclude any of them.
    if status in PARKED:
        open_calls = ToolCall.objects.exclude(status__in=TERMINAL_CALLS)
        rows = rows.filter(pk__in=open_calls.values("run_id"))
    return rows.filter(status=status).order_by("pk")


def _select_due_schedules() -> QuerySet[Schedule]:
    """Select schedules that are due. Schedules of a stopped organization or employee wait until the
    stop is lifted."""
    is_free = Q(employee=None) | Q(employee__stopped_at=None)
    due = Schedule.objects.filter(
        is_free, is_active=True, next_at__lte=Now(), organization__stopped_at=None
    )
    return due.order_by()


DUE_RUNS = compile_ids(_select_due_runs, MAX_SEEN_BY_A_WORKER)
UNHINTED_RUNS = compile_ids(_select_unhinted_runs)
LOST_LEASES = compile_ids(_select_lost_leases)
OVERDUE_RUNS = compile_ids(_select_overdue_runs)
STARTABLE_RUNS = compile_ids(_select_startable_runs)
RUNS_WITH_WRONG_STOP = compile_ids(_select_runs_with_wrong_stop)
RUNS_WITH_ANSWERED_CALLS = compile_ids(_select_answered_calls, pk="run_id")
ORPHANED_RUNS = tuple(compile_ids(partial(_select_orphaned_runs, status)) for status in _ALIVE)
DUE_SCHEDULES = compile_ids(_select_due_schedules)


class ObservedLease(NamedTuple):
    """A lease as it was when observed; every renewal changes it."""

    run_id: int
    owner: str
    epoch: int
    expires_at: datetime

    def is_held_by(self, run: Run) -> bool:
        """Return True if the run still has this lease, and it has not been renewed since."""
        mine = (run.pk, run.lease_owner, run.lease_epoch, run.lease_expires_at)
        return run.status == RunStatus.RUNNING and mine == tuple(self)


HELD_LEASES = CompiledQuery(
    ObservedLease,
    lambda: Run.objects.filter(status=RunStatus.RUNNING).order_by(
        "-lease_expires_at"  # leases that were renewed before the clock was set back come first
    )[:MAX_LEASES],
    run_id="pk",
    owner="lease_owner",
    epoch="lease_epoch",
    expires_at="lease_expires_at",
)

RUN_WAITS = (
    BoundedWait(
        "queued runs",
        lambda: Run.objects.filter(status=RunStatus.QUEUED),
        "next_wake_at",
        lambda: timing().patience,
        lambda: None,
    ),
)
