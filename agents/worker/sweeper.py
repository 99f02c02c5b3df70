"""The sweeper: do everything that is due, and recover runs and cards after a lost hint or
worker.

Any number of sweepers may run at the same time.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from django.db import OperationalError, connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from agents.approvals.current_calls import replace_unstarted_card
from agents.approvals.decisions import expire
from agents.approvals.due import EXPIRED_CARDS, UNSTARTED_CARDS
from agents.employees import sources
from agents.employees.due import DUE_SOURCES
from agents.gateway.due import KEYLESS_RUNS, RESTING_RUNS, SILENT_ASKS, UNREDEEMED_ASKS
from agents.gateway.redemptions import expire_approval, note_silence
from agents.gateway.sessions import end_resting_run
from agents.insight import counting
from agents.insight.decision_counts import DecisionCounting
from agents.notices.due import EXPIRING_CARDS
from agents.notices.reminders import remind
from agents.notices.rule_watch import RuleWatch
from agents.platform import notify
from agents.platform.database_connections import release_connection
from agents.platform.database_outages import OUTAGE_ERRORS, UNREACHABLE, describe_outage
from agents.platform.error_boundary import log_and_continue
from agents.platform.queries.compiled import CompiledQuery, IdRow
from agents.runs import schedules, stops
from agents.runs.engine import next_step
from agents.runs.engine.ending import cancel_unneeded, end_if_overdue
from agents.runs.engine.lost_workers import requeue_or_end
from agents.runs.engine.suspension import collect_delegate_results
from agents.runs.engine.timing import clock_s, timing
from agents.runs.engine.transaction import Transaction, run_transaction
from agents.runs.models import Approval, Run, RunStatus
from agents.runs.queries import due
from agents.standing_grants.due import UNENTITLED_GRANTS, WITHDRAWN_PREAPPROVALS
from agents.standing_grants.making import end_without_right, replace_withdrawn
from agents.worker.chores import build_chores
from agents.worker.lease_watch import LeaseWatch
from agents.worker.upkeep import Upkeep

logger = logging.getLogger(__name__)

Row = TypeVar("Row")


def sweep_forever(stop: threading.Event) -> None:
    """Sweep until stopped; wait while the database is unavailable, locked, full or read-only.

    After an outage, or if the last round took so long that an outage may have gone unnoticed, wait
    two heartbeats, so that workers can renew their leases first.
    """
    sweeper, upkeep = Sweeper(), Upkeep()
    was_unavailable = False
    while not stop.wait(timing().sweep_s):
        if not _try_database(for_writes=was_unavailable):
            was_unavailable = True
            continue
        if was_unavailable:
            if stop.wait(2 * timing().heartbeat_s):
                break
            sweeper = Sweeper()
        began = clock_s()
        sweeper.sweep()
        release_connection()
        upkeep.do_what_is_due()
        took_long = clock_s() - began > timing().lease.total_seconds() / 2
        was_unavailable = sweeper.is_blocked or took_long


def _try_database(for_writes: bool) -> bool:
    """Return True if the database can be read and, with `for_writes`, written; the test does not
    change anything."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        if for_writes:
            newest = Run.objects.order_by("-pk").values_list("pk", flat=True)[:1]
            Run.objects.filter(pk__in=list(newest)).update(hinted_at=F("hinted_at"))
    except OUTAGE_ERRORS as error:
        logger.warning("%s (%s)", describe_outage(error) or UNREACHABLE, error)
        connection.close()
        return False
    return True


def sweep_once() -> int:
    """Do everything that is due; return the number of changed rows."""
    return Sweeper().sweep()


class Sweeper:
    """Sweeps in one process, and remembers the leases that it has seen.

    Attributes:
        is_blocked: True if a database outage, or a wait for longer than a heartbeat, ended the last
            sweep.
    """

    def __init__(self) -> None:
        self.is_blocked = False
        self._watch = LeaseWatch()
        self._decisions = DecisionCounting()
        self._rules = RuleWatch()
        self._chores = build_chores()

    def sweep(self) -> int:
        """Do everything that is due; return the number of changed rows.

        A failure on one row is logged and does not affect other rows. A database outage ends the
        sweep, because every row would wait for it.
        """
        self.is_blocked = False
        done = 0
        for query, act in _SWEEPS:
            with self._surviving(act.__name__):
                done += self._apply(act, [row.pk for row in _read_promptly(query.fetch_all)])
            if self.is_blocked:
                return done
        with self._surviving("watching leases"):
            now = clock_s()
            done += self._apply(
                _take_unrenewed, self._watch.update(_read_promptly(due.HELD_LEASES.fetch_all), now)
            )
        with self._surviving("hinting"):
            done += _hint()
        with log_and_continue("counting"):
            counting.count_if_due()
        with log_and_continue("counting decisions"):
            self._decisions.count_if_due()
        with log_and_continue("watching cards under approval rules"):
            self._rules.tell_if_due()
        for chore in self._chores:
            chore.do_if_due()
        return done

    def _apply(self, act: Callable[[Any], bool], subjects: Sequence[Any]) -> int:
        done = 0
        for subject in subjects:
            if self.is_blocked:
                break
            with (
                self._surviving(f"{act.__name__}({subject})"),
                suppress(Run.DoesNotExist, Approval.DoesNotExist),
            ):
                done += act(subject)
        return done

    @contextmanager
    def _surviving(self, act: str) -> Iterator[None]:
        began = clock_s()
        with log_and_continue(act) as failure:
            yield
        is_late = clock_s() - began > timing().heartbeat_s
        self.is_blocked = self.is_blocked or bool(failure.outage) or is_late


def _take_expired(run_id: int) -> bool:
    """Take a run from its worker if its lease has expired by the database's clock."""
    with _prompt_transaction(run_id) as tx:
        run = tx.run
        if (
            run.status != RunStatus.RUNNING
            or run.lease_expires_at is None
            or run.lease_expires_at >= tx.now
        ):
            return False
        requeue_or_end(tx)
        return True


def _take_unrenewed(lease: due.ObservedLease) -> bool:
    """Take a run from its worker if, by our own clock, its lease has not been renewed for as long
    as a lease is valid."""
    with _prompt_transaction(lease.run_id) as tx:
        if not lease.is_held_by(tx.run):
            return False
        requeue_or_end(tx)
        return True


@contextmanager
def _prompt_transaction(run_id: int) -> Iterator[Transaction]:
    """Open a transaction on an unlocked run.

    Raises:
        OperationalError: opening it took longer than a heartbeat.
    """
    began = clock_s()
    with run_transaction(run_id, wait=False) as tx:
        _refuse_if_late(began)
        yield tx


def _read_promptly(read: Callable[[], list[Row]]) -> list[Row]:
    """Read due rows.

    Raises:
        OperationalError: reading them took longer than a heartbeat.
    """
    began = clock_s()
    rows = read()
    _refuse_if_late(began)
    return rows


def _refuse_if_late(began: float) -> None:
    """Raise OperationalError if the wait since `began` was longer than a heartbeat, so that workers
    could not renew their leases."""
    if clock_s() - began > timing().heartbeat_s:
        raise OperationalError("the database was blocked for longer than a heartbeat")


def _replace_unstarted_card(card_id: int) -> bool:
    return replace_unstarted_card(card_id, "It was approved but could not start in time.")


def _wake(run_id: int) -> bool:
    with run_transaction(run_id, wait=False) as tx:
        return next_step.wake_if_possible(tx)


def _collect_results(run_id: int) -> bool:
    return collect_delegate_results(run_id, wait=False)


def _cancel_unneeded(run_id: int) -> bool:
    return cancel_unneeded(run_id, wait=False)


def _hint() -> int:
    """Repeat the hints for due runs, each at most once in 10 s; return the number of hints that
    Redis accepted."""
    waiting = [row.pk for row in due.UNHINTED_RUNS.fetch_all()]
    sent = notify.wake_runs_now(waiting)
    if sent:
        with transaction.atomic():
            free = Run.objects.select_for_update(skip_locked=True, no_key=True).filter(pk__in=sent)
            mine = list(free.filter(status=RunStatus.QUEUED).values_list("pk", flat=True))
            Run.objects.filter(pk__in=mine).update(hinted_at=Now())
    return len(sent)


_SWEEPS: tuple[tuple[CompiledQuery[IdRow], Callable[[int], bool]], ...] = (
    (due.LOST_LEASES, _take_expired),
    (due.OVERDUE_RUNS, end_if_overdue),
    (EXPIRED_CARDS, expire),
    (EXPIRING_CARDS, remind),
    (due.STARTABLE_RUNS, _wake),
    (due.RUNS_WITH_ANSWERED_CALLS, _collect_results),
    *((orphaned, _cancel_unneeded) for orphaned in due.ORPHANED_RUNS),
    (KEYLESS_RUNS, _cancel_unneeded),
    (RESTING_RUNS, end_resting_run),
    (UNREDEEMED_ASKS, expire_approval),
    (SILENT_ASKS, note_silence),
    (due.RUNS_WITH_WRONG_STOP, stops.apply),
    (UNSTARTED_CARDS, _replace_unstarted_card),
    (UNENTITLED_GRANTS, end_without_right),
    (WITHDRAWN_PREAPPROVALS, replace_withdrawn),
    (due.DUE_SCHEDULES, schedules.fire),
    (DUE_SOURCES, sources.queue_refresh),
)
