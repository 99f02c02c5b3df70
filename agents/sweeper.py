"""The sweeper: wakes, expires and recovers what a lost hint or a lost worker left behind. Any number may run."""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from agents import counting, hints, schedules, sources, stops
from agents.approvals import expire
from agents.boundaries import surviving
from agents.engine import endings, losses, turns
from agents.engine.connections import let_go
from agents.engine.endings import Ending
from agents.engine.recovery import ask_again
from agents.engine.suspended import collect, orphans, with_ended_children
from agents.engine.timing import CRASHES, timing
from agents.events import recording
from agents.models import PARKED, Approval, ApprovalKind, ApprovalStatus, ExitReason, Run, RunStatus, ToolCall
from agents.statements import Prepared
from tools.connections.models import Source
from tools.schedules.models import Schedule

logger = logging.getLogger(__name__)

_AT_ONCE = 200
_PREVIEWS_AT_ONCE = 2
_LIVING = (RunStatus.QUEUED, RunStatus.RUNNING, *PARKED)


def sweep_forever(stop: threading.Event) -> None:
    """Sweep until told to stop; a lost database is waited for.

    When it is back, the heartbeats of workers that outlived it come first: their leases may have run out meanwhile.
    """
    was_away = False
    while not stop.wait(timing().sweep_s):
        if not _database_answers():
            was_away = True
            continue
        if was_away and stop.wait(2 * timing().heartbeat_s):
            break
        was_away = False
        sweep_once()
        let_go()


def _database_answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except (OperationalError, InterfaceError) as error:
        logger.warning("the database does not answer: %s", error)
        connection.close()
        return False
    return True


def sweep_once() -> int:
    """Look for everything that is due and do it; returns how many rows it touched.

    What fails for one row is logged and holds up no other.
    """
    done = 0
    for due, act in _STEPS:
        with surviving(act.__name__):
            for (pk,) in due.rows():
                done += _touch(act, pk)
    with surviving("hinting"):
        done += _hint()
    with surviving("counting"):
        counting.count_if_due()
    return done


def _touch(act: Callable[[int], bool], pk: int) -> bool:
    with surviving(f"{act.__name__}({pk})"), suppress(Run.DoesNotExist, Approval.DoesNotExist):
        return act(pk)
    return False


def _lost_leases() -> QuerySet[Run, Any]:
    return Run.objects.filter(status=RunStatus.RUNNING, lease_expires_at__lt=Now()).values_list("pk")[:_AT_ONCE]


def _recover(run_id: int) -> bool:
    """The worker of this run is gone: queue it again, end it if that happened too often or it was cancelled."""
    with recording(run_id, wait=False) as record:
        run = record.run
        if run.status != RunStatus.RUNNING or run.lease_expires_at is None or run.lease_expires_at >= record.now:
            return False
        if run.cancel_requested_at is not None:
            endings.end(record, Ending(ExitReason.CANCELLED))
            return True
        run.crash_count += 1
        if run.crash_count >= CRASHES:
            endings.end(record, Ending(ExitReason.CRASH_LOOP))
        else:
            losses.take_over(record)
        return True


def _overdue() -> QuerySet[Run, Any]:
    late = Run.objects.filter(status__in=(RunStatus.QUEUED, RunStatus.WAITING), deadline_at__lte=Now())
    return late.values_list("pk")[:_AT_ONCE]


def _end_overdue(run_id: int) -> bool:
    with recording(run_id, wait=False) as record:
        run = record.run
        is_late = run.deadline_at is not None and run.deadline_at <= record.now
        if run.status not in (RunStatus.QUEUED, RunStatus.WAITING) or not is_late:
            return False
        is_cancelled = run.cancel_requested_at is not None
        endings.end(record, Ending(ExitReason.CANCELLED if is_cancelled else ExitReason.DEADLINE))
        return True


def _expired_cards() -> QuerySet[Approval, Any]:
    expiring = (ApprovalKind.APPROVAL, ApprovalKind.QUESTION)
    old = Approval.objects.filter(status=ApprovalStatus.PENDING, kind__in=expiring, expires_at__lte=Now())
    return old.values_list("pk")[:_AT_ONCE]


def _unstarted_cards() -> QuerySet[Approval, Any]:
    stuck = Approval.objects.filter(status=ApprovalStatus.APPROVED, start_after__lt=Now() - timing().start_within)
    in_any_order = stuck.order_by("?")  # one that fails each time must hold up no other
    return in_any_order.values_list("pk")[:_PREVIEWS_AT_ONCE]


def _ask_again(card_id: int) -> bool:
    return ask_again(card_id, "It was approved, but could not be started in time.")


def _startable_runs() -> QuerySet[Run, Any]:
    graced = Run.objects.filter(
        status__in=PARKED, approvals__status=ApprovalStatus.APPROVED, approvals__start_after__lte=Now()
    )
    return graced.values_list("pk").distinct()[:_AT_ONCE]


def _wake(run_id: int) -> bool:
    with recording(run_id, wait=False) as record:
        return turns.wake_if_possible(record)


def _unsettled() -> QuerySet[Run, Any]:
    return stops.unsettled().order_by("pk").values_list("pk")[:_AT_ONCE]


def _answered() -> QuerySet[ToolCall, Any]:
    return with_ended_children()[:_AT_ONCE]


def _collect(run_id: int) -> bool:
    return collect(run_id, wait=False)


def _orphans(of_status: RunStatus) -> QuerySet[Run, Any]:
    return orphans(of_status)[:_AT_ONCE]


def _cancel_orphan(run_id: int) -> bool:
    return endings.cancel_child(run_id, wait=False)


def _due_schedules() -> QuerySet[Schedule, Any]:
    return schedules.due().order_by().values_list("pk")[:_AT_ONCE]


def _due_sources() -> QuerySet[Source, Any]:
    return sources.due().order_by().values_list("pk")[:_AT_ONCE]


def _unhinted() -> QuerySet[Run, Any]:
    due = Run.objects.filter(
        Q(next_wake_at=None) | Q(next_wake_at__lte=Now()),
        Q(hinted_at=None) | Q(hinted_at__lt=Now() - timing().hint_again),
        Q(stopped_because="") | Q(cancel_requested_at__isnull=False),
        status=RunStatus.QUEUED,
    )
    return due.order_by("pk").values_list("pk")[:_AT_ONCE]


_UNHINTED = Prepared(_unhinted, slots=())


def _hint() -> int:
    """Send the hint of queued runs again, at most one each 10 s."""
    waiting = [pk for (pk,) in _UNHINTED.rows()]
    if not waiting:
        return 0
    with transaction.atomic():
        free = Run.objects.select_for_update(skip_locked=True, no_key=True).filter(pk__in=waiting)
        mine = list(free.filter(status=RunStatus.QUEUED).values_list("pk", flat=True))
        Run.objects.filter(pk__in=mine).update(hinted_at=Now())
    for pk in mine:
        hints.wake(pk)
    return len(mine)


_STEPS: tuple[tuple[Prepared, Callable[[int], bool]], ...] = (
    (Prepared(_lost_leases, slots=()), _recover),
    (Prepared(_overdue, slots=()), _end_overdue),
    (Prepared(_expired_cards, slots=()), expire),
    (Prepared(_startable_runs, slots=()), _wake),
    (Prepared(_answered, slots=()), _collect),
    *((Prepared(partial(_orphans, status), slots=()), _cancel_orphan) for status in _LIVING),
    (Prepared(_unsettled, slots=()), stops.apply),
    (Prepared(_unstarted_cards, slots=()), _ask_again),
    (Prepared(_due_schedules, slots=()), schedules.fire),
    (Prepared(_due_sources, slots=()), sources.refresh_later),
)
