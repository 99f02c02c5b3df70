"""The sweeper: wakes, expires and recovers what a lost hint or a lost worker left behind. Any number may run."""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from django.db import OperationalError, connection, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from agents import audit, counting, hints, schedules, sources, stops
from agents.approvals import expire
from agents.boundaries import surviving
from agents.database_condition import LOST, UNAVAILABLE, condition_of
from agents.engine import clock, endings, lease, losses, turns
from agents.engine.connections import let_go
from agents.engine.endings import Ending
from agents.engine.lease_watch import Lease, LeaseWatch, read_held_leases
from agents.engine.recovery import ask_again
from agents.engine.suspended import collect, orphans, with_ended_children
from agents.engine.timing import CRASHES, timing
from agents.events import Recording, recording
from agents.models import PARKED, Approval, ApprovalKind, ApprovalStatus, ExitReason, Run, RunStatus, ToolCall
from agents.statements import Prepared
from tools.connections.models import Source
from tools.schedules.models import Schedule

logger = logging.getLogger(__name__)

_AT_ONCE = 200
_PREVIEWS_AT_ONCE = 2
_HEADS_EVERY_S = 24 * 3600
Row = TypeVar("Row")
_LIVING = (RunStatus.QUEUED, RunStatus.RUNNING, *PARKED)


def sweep_forever(stop: threading.Event) -> None:
    """Sweep until stopped; wait while the database is unavailable, locked, full or read-only.

    When it is back, the heartbeats of workers that outlived it come first: their leases may have run out meanwhile.
    """
    sweeper = Sweeper()
    was_away = False
    log_heads_at = time.monotonic()
    while not stop.wait(timing().sweep_s):
        if not _database_works(for_writes=was_away):
            was_away = True
            continue
        if was_away:
            if stop.wait(2 * timing().heartbeat_s):
                break
            sweeper = Sweeper()
        sweeper.sweep()
        was_away = sweeper.is_hindered
        let_go()
        if time.monotonic() >= log_heads_at:
            log_heads_at = time.monotonic() + _HEADS_EVERY_S
            with surviving("logging the audit's heads"):
                audit.log_heads()


def _database_works(for_writes: bool) -> bool:
    """Return True if the database answers; with `for_writes`, if it also accepts a write that changes nothing."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        if for_writes:
            newest = Run.objects.order_by("-pk").values_list("pk", flat=True)[:1]
            Run.objects.filter(pk__in=list(newest)).update(hinted_at=F("hinted_at"))
    except UNAVAILABLE as error:
        logger.warning("%s (%s)", condition_of(error) or LOST, error)
        connection.close()
        return False
    return True


def sweep_once() -> int:
    """Do everything that is due; return the number of changed rows."""
    return Sweeper().sweep()


class Sweeper:
    """Sweeps for one process, and remembers the leases that it has seen.

    Attributes:
        is_hindered: the last sweep was ended by the condition of the database.
    """

    def __init__(self) -> None:
        self.is_hindered = False
        self._watch = LeaseWatch()

    def sweep(self) -> int:
        """Do everything that is due; return the number of changed rows.

        A failure for one row is logged and holds up no other. A condition of the database ends the sweep, because it
        would hold up each row.
        """
        self.is_hindered = False
        done = 0
        for due, act in _STEPS:
            with self._surviving(act.__name__):
                done += self._touch(act, [pk for (pk,) in _read_at_once(due.rows)])
            if self.is_hindered:
                return done
        with self._surviving("watching leases"):
            now = clock.now_s()
            done += self._touch(_recover_unrenewed, self._watch.see(_read_at_once(read_held_leases), now))
        with self._surviving("hinting"):
            done += _hint()
        with surviving("counting"):
            counting.count_if_due()
        return done

    def _touch(self, act: Callable[[Any], bool], subjects: Sequence[Any]) -> int:
        done = 0
        for subject in subjects:
            if self.is_hindered:
                break
            with self._surviving(f"{act.__name__}({subject})"), suppress(Run.DoesNotExist, Approval.DoesNotExist):
                done += act(subject)
        return done

    @contextmanager
    def _surviving(self, act: str) -> Iterator[None]:
        with surviving(act) as survived:
            yield
        self.is_hindered = self.is_hindered or bool(survived.condition)


def _lost_leases() -> QuerySet[Run, Any]:
    return Run.objects.filter(status=RunStatus.RUNNING, lease_expires_at__lt=Now()).values_list("pk")[:_AT_ONCE]


def _recover(run_id: int) -> bool:
    """Take a run from its worker if its lease is over by the database's clock."""
    with _recording_at_once(run_id) as record:
        run = record.run
        if run.status != RunStatus.RUNNING or run.lease_expires_at is None or run.lease_expires_at >= record.now:
            return False
        return _lose_worker(record)


def _recover_unrenewed(lease: Lease) -> bool:
    """Take a run from its worker if its lease went unrenewed for a lease's duration by our own clock."""
    with _recording_at_once(lease.run_id) as record:
        return lease.is_of(record.run) and _lose_worker(record)


@contextmanager
def _recording_at_once(run_id: int) -> Iterator[Recording]:
    """Open a transaction on a free run.

    Raises:
        OperationalError: it took longer than a heartbeat to begin.
    """
    began = clock.now_s()
    with recording(run_id, wait=False) as record:
        _refuse_if_late(began)
        yield record


def _read_at_once(read: Callable[[], list[Row]]) -> list[Row]:
    """Read what is due.

    Raises:
        OperationalError: it took longer than a heartbeat.
    """
    began = clock.now_s()
    rows = read()
    _refuse_if_late(began)
    return rows


def _refuse_if_late(began: float) -> None:
    """Refuse to act on leases that nobody could renew meanwhile: the workers come first."""
    if clock.now_s() - began > timing().heartbeat_s:
        raise OperationalError("the database was held up for longer than a heartbeat")


def _lose_worker(record: Recording) -> bool:
    """Requeue a run that lost its worker; end it if that happened too often or it was cancelled."""
    run = record.run
    if run.cancel_requested_at is not None:
        endings.end(record, Ending(ExitReason.CANCELLED))
        return True
    run.crash_count += 1
    if run.crash_count >= CRASHES:
        endings.end(record, Ending(ExitReason.CRASH_LOOP))
    else:
        losses.take_over(record)
        if run.crash_count > 1:  # one of them may be the cause: they must not all meet again
            run.next_wake_at = record.now + timing().apart * random.random()
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
    due = lease.due_runs().filter(
        # a hint from the future was sent before the database's clock was set back
        Q(hinted_at=None) | Q(hinted_at__lt=Now() - timing().hint_again) | Q(hinted_at__gt=Now()),
    )
    return due.order_by("pk").values_list("pk")[:_AT_ONCE]


_UNHINTED = Prepared(_unhinted, slots=())


def _hint() -> int:
    """Send hints for queued runs again, each at most once in 10 s; hints that Redis refused do not count as sent."""
    waiting = [pk for (pk,) in _UNHINTED.rows()]
    sent = hints.hand_over(waiting)
    if sent:
        with transaction.atomic():
            free = Run.objects.select_for_update(skip_locked=True, no_key=True).filter(pk__in=sent)
            mine = list(free.filter(status=RunStatus.QUEUED).values_list("pk", flat=True))
            Run.objects.filter(pk__in=mine).update(hinted_at=Now())
    return len(sent)


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
