"""The compiled queries of the sweeper and of workers who look for runs: what is due, left behind or lost.

Each is bounded, so that one sweep ends soon; the next one takes the rest.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from django.db.models import BooleanField, Exists, ExpressionWrapper, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from agents.approvals.models import Approval, ApprovalKind, ApprovalStatus
from agents.insight.models import FiguresHead
from agents.platform.queries.compiled import CompiledQuery, Id
from agents.runs.engine.timing import timing
from agents.runs.models import ENDED, PARKED, TERMINAL_CALLS, CallStatus, Event, EventType, Run, RunStatus, ToolCall
from tools.connections.models import Source, SourceKind
from tools.schedules.models import Schedule

MOST_ROWS = 200
MOST_PREVIEWS = 2
MOST_SEEN_BY_A_WORKER = 1_000
_ALIVE = (RunStatus.QUEUED, RunStatus.RUNNING, *PARKED)


def _ids(build: Callable[[], QuerySet[Any]], most: int = MOST_ROWS, pk: str = "pk") -> CompiledQuery[Id]:
    return CompiledQuery(Id, lambda: build()[:most], pk=pk)


def _due_runs() -> QuerySet[Run]:
    """Queued runs that are due and not stopped."""
    return Run.objects.filter(
        Q(next_wake_at=None) | Q(next_wake_at__lte=Now()),
        Q(stopped_because="") | Q(cancel_requested_at__isnull=False),
        status=RunStatus.QUEUED,
    ).order_by("pk")


def _unhinted_runs() -> QuerySet[Run]:
    """Due runs without a recent hint; a hint from the future was sent before the database's clock was set back."""
    is_forgotten = Q(hinted_at=None) | Q(hinted_at__lt=Now() - timing().hint_again) | Q(hinted_at__gt=Now())
    return _due_runs().filter(is_forgotten)


def _lost_leases() -> QuerySet[Run]:
    return Run.objects.filter(status=RunStatus.RUNNING, lease_expires_at__lt=Now())


def _overdue_runs() -> QuerySet[Run]:
    return Run.objects.filter(status__in=(RunStatus.QUEUED, RunStatus.WAITING), deadline_at__lte=Now())


def _startable_runs() -> QuerySet[Run]:
    """Runs with an approved card whose grace is over."""
    return Run.objects.filter(
        status__in=PARKED, approvals__status=ApprovalStatus.APPROVED, approvals__start_after__lte=Now()
    ).distinct()


def _runs_with_wrong_stop() -> QuerySet[Run]:
    """Runs that live and do not know yet that they were stopped, or released."""
    is_stopped = Q(organization__stopped_at__isnull=False) | Q(employee__stopped_at__isnull=False)
    knows = ~Q(stopped_because="")
    return Run.objects.filter(is_stopped & ~knows | ~is_stopped & knows).exclude(status__in=ENDED).order_by("pk")


def _expired_cards() -> QuerySet[Approval]:
    expiring = (ApprovalKind.APPROVAL, ApprovalKind.QUESTION)
    return Approval.objects.filter(status=ApprovalStatus.PENDING, kind__in=expiring, expires_at__lte=Now())


def _unstarted_cards() -> QuerySet[Approval]:
    """Approved cards that were not started in time, in any order: one that fails each time must hold up no other."""
    late = Approval.objects.filter(status=ApprovalStatus.APPROVED, start_after__lt=Now() - timing().start_within)
    return late.order_by("?")


def _answered_calls() -> QuerySet[ToolCall]:
    """Calls whose child run has ended, though nobody has taken its answer."""
    open_ = ToolCall.objects.exclude(status__in=TERMINAL_CALLS).filter(status=CallStatus.SUSPENDED)
    return open_.filter(child_run__status__in=ENDED).order_by("run_id").distinct()


def _orphaned_runs(status: RunStatus) -> QuerySet[Run]:
    """Runs that live, though the call that asked for them was cancelled; an index leads to each.

    A run that had ended before, and was resumed by a person, answers nobody and lives on.
    """
    had_ended = Event.objects.filter(run_id=OuterRef("pk"), type=EventType.RUN_FINISHED)
    rows = Run.objects.filter(~Exists(had_ended), parent_call__status=CallStatus.CANCELLED, cancel_requested_at=None)
    if status in PARKED:  # each has an open call
        open_calls = ToolCall.objects.exclude(status__in=TERMINAL_CALLS)
        rows = rows.filter(pk__in=open_calls.values("run_id"))
    return rows.filter(status=status).order_by("pk")


def _due_schedules() -> QuerySet[Schedule]:
    """Schedules whose time has come; those of a stopped organization or employee wait until it is released."""
    is_free = Q(employee=None) | Q(employee__stopped_at=None)
    due = Schedule.objects.filter(is_free, is_active=True, next_at__lte=Now(), organization__stopped_at=None)
    return due.order_by()


def due_sources() -> QuerySet[Source]:
    """MCP servers not read for a while, and sources that were never read though nothing was wrong with them.

    An API's description is read again only when an admin asks for it.
    """
    is_server = Q(kind__in=(SourceKind.MCP_HTTP, SourceKind.MCP_STDIO))
    is_new = Q(refreshed_at=None, problem="")
    return Source.objects.filter(is_server | is_new, is_active=True, due_at__lte=Now()).order_by()


DUE_RUNS = _ids(_due_runs, MOST_SEEN_BY_A_WORKER)
UNHINTED_RUNS = _ids(_unhinted_runs)
LOST_LEASES = _ids(_lost_leases)
OVERDUE_RUNS = _ids(_overdue_runs)
STARTABLE_RUNS = _ids(_startable_runs)
RUNS_WITH_WRONG_STOP = _ids(_runs_with_wrong_stop)
EXPIRED_CARDS = _ids(_expired_cards)
UNSTARTED_CARDS = _ids(_unstarted_cards, MOST_PREVIEWS)
RUNS_WITH_ANSWERED_CALLS = _ids(_answered_calls, pk="run_id")
ORPHANED_RUNS = tuple(_ids(partial(_orphaned_runs, status)) for status in _ALIVE)
DUE_SCHEDULES = _ids(_due_schedules)
DUE_SOURCES = _ids(due_sources)


class FiguresDue(NamedTuple):
    """True if it is time to count again."""

    is_due: bool


FIGURES_DUE = CompiledQuery(
    FiguresDue,
    lambda: FiguresHead.objects.filter(pk=FiguresHead.ONLY),
    is_due=ExpressionWrapper(Q(due_at__lte=Now()), BooleanField()),
)
