"""The compiled queries for work that is due, left behind or lost, for the sweeper and for workers that look for runs.

Each is limited, so that a sweep ends soon; the next sweep handles the rest.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from django.db.models import BooleanField, Exists, ExpressionWrapper, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from agents.accounts.models import DECIDERS, Membership
from agents.approvals.models import Approval, ApprovalKind, ApprovalStatus
from agents.gateway.models import AgentRun
from agents.insight.models import FiguresHead
from agents.notices.models import Notice, NoticeKind
from agents.platform.queries.compiled import CompiledQuery, IdRow
from agents.runs.engine.timing import timing
from agents.runs.models import (
    ENDED,
    PARKED,
    TERMINAL_CALLS,
    CallStatus,
    Event,
    EventType,
    Origin,
    Run,
    RunStatus,
    ToolCall,
)
from agents.standing_grants.models import StandingGrant
from tools.connections.models import Source, SourceKind
from tools.schedules.models import Schedule

MAX_ROWS = 200
MAX_PREVIEWS = 2
MAX_SEEN_BY_A_WORKER = 1_000
MAX_LEASES = 10_000
_ALIVE = (RunStatus.QUEUED, RunStatus.RUNNING, *PARKED)


def _compile_ids(build: Callable[[], QuerySet[Any]], most: int = MAX_ROWS, pk: str = "pk") -> CompiledQuery[IdRow]:
    return CompiledQuery(IdRow, lambda: build()[:most], pk=pk)


def _select_due_runs() -> QuerySet[Run]:
    """Select queued runs that are due and not stopped."""
    return Run.objects.filter(
        Q(next_wake_at=None) | Q(next_wake_at__lte=Now()),
        Q(stopped_because="") | Q(cancel_requested_at__isnull=False),
        status=RunStatus.QUEUED,
    ).order_by("pk")


def _select_unhinted_runs() -> QuerySet[Run]:
    """Select due runs without a recent hint; a hint from the future was sent before the clock was set back."""
    is_forgotten = Q(hinted_at=None) | Q(hinted_at__lt=Now() - timing().hint_interval) | Q(hinted_at__gt=Now())
    return _select_due_runs().filter(is_forgotten)


def _select_lost_leases() -> QuerySet[Run]:
    return Run.objects.filter(status=RunStatus.RUNNING, lease_expires_at__lt=Now())


def _select_overdue_runs() -> QuerySet[Run]:
    return Run.objects.filter(status__in=(RunStatus.QUEUED, RunStatus.WAITING), deadline_at__lte=Now())


def _select_startable_runs() -> QuerySet[Run]:
    """Select runs with an approved card whose grace period is over."""
    due = {"approvals__status": ApprovalStatus.APPROVED, "approvals__start_after__lte": Now()}
    return Run.objects.filter(status__in=PARKED, **due).exclude(origin=Origin.ASK).distinct()


def _select_runs_with_wrong_stop() -> QuerySet[Run]:
    """Select unfinished runs whose `stopped_because` does not yet match the stop or its end."""
    is_stopped = Q(organization__stopped_at__isnull=False) | Q(employee__stopped_at__isnull=False)
    knows = ~Q(stopped_because="")
    return Run.objects.filter(is_stopped & ~knows | ~is_stopped & knows).exclude(status__in=ENDED).order_by("pk")


def _select_expired_cards() -> QuerySet[Approval]:
    expiring = (ApprovalKind.APPROVAL, ApprovalKind.QUESTION)
    return Approval.objects.filter(status=ApprovalStatus.PENDING, kind__in=expiring, expires_at__lte=Now())


def _select_expiring_cards() -> QuerySet[Approval]:
    """Select waiting cards that expire within a day, and that nobody was reminded of.

    A card that lives for a day alone is old enough after 18 hours, so that no new card counts as expiring.
    """
    reminded = Notice.objects.filter(approval=OuterRef("pk"), kind=NoticeKind.CARD_EXPIRING)
    cards = Approval.objects.filter(
        status=ApprovalStatus.PENDING,
        kind__in=(ApprovalKind.APPROVAL, ApprovalKind.QUESTION),
        expires_at__gt=Now(),
        expires_at__lte=Now() + timedelta(days=1),
        requested_at__lte=Now() - timedelta(hours=18),
    )
    return cards.filter(~Exists(reminded)).order_by("expires_at")


def _select_unstarted_cards() -> QuerySet[Approval]:
    """Select approved cards that were not started in time, in random order: one that fails must block no other."""
    late = Approval.objects.filter(status=ApprovalStatus.APPROVED, start_after__lt=Now() - timing().approval_validity)
    return late.exclude(run__origin=Origin.ASK).order_by("?")


def _select_answered_calls() -> QuerySet[ToolCall]:
    """Select suspended calls whose child run has ended, with its answer not yet taken."""
    open_ = ToolCall.objects.exclude(status__in=TERMINAL_CALLS).filter(status=CallStatus.SUSPENDED)
    return open_.filter(child_run__status__in=ENDED).order_by("run_id").distinct()


def _select_orphaned_runs(status: RunStatus) -> QuerySet[Run]:
    """Select unfinished runs of this status whose parent call was canceled; each status has an index.

    A run that had ended and was resumed by a person answers nobody, so it continues.
    """
    had_ended = Event.objects.filter(run_id=OuterRef("pk"), type=EventType.RUN_FINISHED)
    rows = Run.objects.filter(~Exists(had_ended), parent_call__status=CallStatus.CANCELLED, cancel_requested_at=None)
    if status in PARKED:  # each has an open call
        open_calls = ToolCall.objects.exclude(status__in=TERMINAL_CALLS)
        rows = rows.filter(pk__in=open_calls.values("run_id"))
    return rows.filter(status=status).order_by("pk")


def _select_unentitled_grants() -> QuerySet[StandingGrant]:
    """Select standing grants in force whose maker can no longer decide cards."""
    makers = Membership.objects.filter(
        organization=OuterRef("organization"), user=OuterRef("made_by"), user__is_active=True, role__in=DECIDERS
    )
    in_force = StandingGrant.objects.filter(revoked_at__isnull=True, ended_at__isnull=True, expires_at__gt=Now())
    return in_force.filter(~Exists(makers)).order_by("pk")


def _select_withdrawn_answers() -> QuerySet[Approval]:
    """Select cards of standing grants that ended before the calls started, in random order: none must block another."""
    has_ended = Q(standing_grant__revoked_at__isnull=False) | Q(standing_grant__ended_at__isnull=False)
    return Approval.objects.filter(has_ended, status=ApprovalStatus.APPROVED).order_by("?")


def _select_due_schedules() -> QuerySet[Schedule]:
    """Select schedules that are due; those of a stopped organization or employee wait until the stop is lifted."""
    is_free = Q(employee=None) | Q(employee__stopped_at=None)
    due = Schedule.objects.filter(is_free, is_active=True, next_at__lte=Now(), organization__stopped_at=None)
    return due.order_by()


def select_due_sources() -> QuerySet[Source]:
    """Select MCP servers that have not been read for a while, and sources that were never read and have no problem.

    The description of an API is read again only when an admin asks for it.
    """
    is_server = Q(kind__in=(SourceKind.MCP_HTTP, SourceKind.MCP_STDIO))
    is_new = Q(refreshed_at=None, problem="")
    return Source.objects.filter(is_server | is_new, is_active=True, due_at__lte=Now()).order_by()


def _select_resting_runs() -> QuerySet[Run]:
    """Select runs of agents that run elsewhere in which nothing is open, and to which no request came in time."""
    return Run.objects.filter(status=RunStatus.WAITING, origin=Origin.MCP, next_wake_at__lte=Now())


def _select_unredeemed_asks() -> QuerySet[Approval]:
    """Select approvals of asks that were not redeemed in time."""
    return Approval.objects.filter(status=ApprovalStatus.APPROVED, run__origin=Origin.ASK, valid_until__lte=Now())


def _select_silent_asks() -> QuerySet[ToolCall]:
    """Select redeemed asks whose agent did not say in time what happened."""
    return ToolCall.objects.filter(status=CallStatus.EXECUTING, run__origin=Origin.ASK, deadline_at__lte=Now())


def _select_keyless_runs() -> QuerySet[AgentRun]:
    """Select open runs of agent keys that do not work any more."""
    return AgentRun.without_key().exclude(run__status__in=ENDED).filter(run__cancel_requested_at=None)


DUE_RUNS = _compile_ids(_select_due_runs, MAX_SEEN_BY_A_WORKER)
UNHINTED_RUNS = _compile_ids(_select_unhinted_runs)
LOST_LEASES = _compile_ids(_select_lost_leases)
OVERDUE_RUNS = _compile_ids(_select_overdue_runs)
STARTABLE_RUNS = _compile_ids(_select_startable_runs)
RUNS_WITH_WRONG_STOP = _compile_ids(_select_runs_with_wrong_stop)
EXPIRING_CARDS = _compile_ids(_select_expiring_cards)
EXPIRED_CARDS = _compile_ids(_select_expired_cards)
UNSTARTED_CARDS = _compile_ids(_select_unstarted_cards, MAX_PREVIEWS)
RUNS_WITH_ANSWERED_CALLS = _compile_ids(_select_answered_calls, pk="run_id")
ORPHANED_RUNS = tuple(_compile_ids(partial(_select_orphaned_runs, status)) for status in _ALIVE)
UNENTITLED_GRANTS = _compile_ids(_select_unentitled_grants)
WITHDRAWN_ANSWERS = _compile_ids(_select_withdrawn_answers, MAX_PREVIEWS)
DUE_SCHEDULES = _compile_ids(_select_due_schedules)
DUE_SOURCES = _compile_ids(select_due_sources)
RESTING_RUNS = _compile_ids(_select_resting_runs)
UNREDEEMED_ASKS = _compile_ids(_select_unredeemed_asks)
SILENT_ASKS = _compile_ids(_select_silent_asks)
KEYLESS_RUNS = _compile_ids(_select_keyless_runs, pk="run_id")


class ObservedLease(NamedTuple):
    """A lease between two renewals: the next renewal creates a different one."""

    run_id: int
    owner: str
    epoch: int
    expires_at: datetime

    def is_held_by(self, run: Run) -> bool:
        """Return True if the run still has this lease, unrenewed."""
        mine = (run.pk, run.lease_owner, run.lease_epoch, run.lease_expires_at)
        return run.status == RunStatus.RUNNING and mine == tuple(self)


HELD_LEASES = CompiledQuery(
    ObservedLease,
    lambda: Run.objects.filter(status=RunStatus.RUNNING).order_by(
        "-lease_expires_at"  # leases from before the clock was set back expire last
    )[:MAX_LEASES],
    run_id="pk",
    owner="lease_owner",
    epoch="lease_epoch",
    expires_at="lease_expires_at",
)


class FiguresDueRow(NamedTuple):
    """A row that says whether it is time to count again."""

    is_due: bool


FIGURES_DUE = CompiledQuery(
    FiguresDueRow,
    lambda: FiguresHead.objects.filter(pk=FiguresHead.ONLY),
    is_due=ExpressionWrapper(Q(due_at__lte=Now()), BooleanField()),
)
