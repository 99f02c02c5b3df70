"""The sweeper: wakes, expires and recovers what a lost hint or a lost worker left behind. Any number may run."""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from django.db import OperationalError, connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from agents.accounts import audit
from agents.approvals.asking_again import ask_again
from agents.approvals.decisions import expire
from agents.approvals.models import Approval
from agents.employees import sources
from agents.insight import counting
from agents.platform import notify
from agents.platform.boundaries import surviving
from agents.platform.database_condition import LOST, UNAVAILABLE, condition_of, release_connection
from agents.platform.queries import sweeps
from agents.platform.queries.compiled import CompiledQuery, Id
from agents.runs import schedules, stops
from agents.runs.engine import ending, next_step
from agents.runs.engine.ending import Ending
from agents.runs.engine.recovery import requeue_after_loss
from agents.runs.engine.suspension import collect
from agents.runs.engine.timing import CRASHES, clock_s, timing
from agents.runs.engine.transaction import Transaction, run_transaction
from agents.runs.models import ExitReason, Run, RunStatus
from agents.worker.lease_watch import LeaseWatch, ObservedLease, read_held_leases

logger = logging.getLogger(__name__)

_HEADS_EVERY_S = 24 * 3600
Row = TypeVar("Row")


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
        release_connection()
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
                done += self._touch(act, [row.pk for row in _read_at_once(due.rows)])
            if self.is_hindered:
                return done
        with self._surviving("watching leases"):
            now = clock_s()
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


def _recover(run_id: int) -> bool:
    """Take a run from its worker if its lease is over by the database's clock."""
    with _transaction_at_once(run_id) as tx:
        run = tx.run
        if run.status != RunStatus.RUNNING or run.lease_expires_at is None or run.lease_expires_at >= tx.now:
            return False
        return _lose_worker(tx)


def _recover_unrenewed(lease: ObservedLease) -> bool:
    """Take a run from its worker if its lease went unrenewed for a lease's duration by our own clock."""
    with _transaction_at_once(lease.run_id) as tx:
        return lease.is_of(tx.run) and _lose_worker(tx)


@contextmanager
def _transaction_at_once(run_id: int) -> Iterator[Transaction]:
    """Open a transaction on a free run.

    Raises:
        OperationalError: it took longer than a heartbeat to begin.
    """
    began = clock_s()
    with run_transaction(run_id, wait=False) as tx:
        _refuse_if_late(began)
        yield tx


def _read_at_once(read: Callable[[], list[Row]]) -> list[Row]:
    """Read what is due.

    Raises:
        OperationalError: it took longer than a heartbeat.
    """
    began = clock_s()
    rows = read()
    _refuse_if_late(began)
    return rows


def _refuse_if_late(began: float) -> None:
    """Refuse to act on leases that nobody could renew meanwhile: the workers come first."""
    if clock_s() - began > timing().heartbeat_s:
        raise OperationalError("the database was held up for longer than a heartbeat")


def _lose_worker(tx: Transaction) -> bool:
    """Requeue a run that lost its worker; end it if that happened too often or it was cancelled."""
    run = tx.run
    if run.cancel_requested_at is not None:
        ending.end_run(tx, Ending(ExitReason.CANCELLED))
        return True
    run.crash_count += 1
    if run.crash_count >= CRASHES:
        ending.end_run(tx, Ending(ExitReason.CRASH_LOOP))
    else:
        requeue_after_loss(tx)
        if run.crash_count > 1:  # one of them may be the cause: they must not all meet again
            run.next_wake_at = tx.now + timing().apart * random.random()
    return True


def _end_overdue(run_id: int) -> bool:
    with run_transaction(run_id, wait=False) as tx:
        run = tx.run
        is_late = run.deadline_at is not None and run.deadline_at <= tx.now
        if run.status not in (RunStatus.QUEUED, RunStatus.WAITING) or not is_late:
            return False
        is_cancelled = run.cancel_requested_at is not None
        ending.end_run(tx, Ending(ExitReason.CANCELLED if is_cancelled else ExitReason.DEADLINE))
        return True


def _ask_again(card_id: int) -> bool:
    return ask_again(card_id, "It was approved, but could not be started in time.")


def _wake(run_id: int) -> bool:
    with run_transaction(run_id, wait=False) as tx:
        return next_step.wake_if_possible(tx)


def _collect(run_id: int) -> bool:
    return collect(run_id, wait=False)


def _cancel_orphan(run_id: int) -> bool:
    return ending.cancel_child(run_id, wait=False)


def _hint() -> int:
    """Send hints for queued runs again, each at most once in 10 s; hints that Redis refused do not count as sent."""
    waiting = [row.pk for row in sweeps.UNHINTED_RUNS.rows()]
    sent = notify.wake_runs_now(waiting)
    if sent:
        with transaction.atomic():
            free = Run.objects.select_for_update(skip_locked=True, no_key=True).filter(pk__in=sent)
            mine = list(free.filter(status=RunStatus.QUEUED).values_list("pk", flat=True))
            Run.objects.filter(pk__in=mine).update(hinted_at=Now())
    return len(sent)


_STEPS: tuple[tuple[CompiledQuery[Id], Callable[[int], bool]], ...] = (
    (sweeps.LOST_LEASES, _recover),
    (sweeps.OVERDUE_RUNS, _end_overdue),
    (sweeps.EXPIRED_CARDS, expire),
    (sweeps.STARTABLE_RUNS, _wake),
    (sweeps.RUNS_WITH_ANSWERED_CALLS, _collect),
    *((orphaned, _cancel_orphan) for orphaned in sweeps.ORPHANED_RUNS),
    (sweeps.RUNS_WITH_WRONG_STOP, stops.apply),
    (sweeps.UNSTARTED_CARDS, _ask_again),
    (sweeps.DUE_SCHEDULES, schedules.fire),
    (sweeps.DUE_SOURCES, sources.refresh_later),
)
