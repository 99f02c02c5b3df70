"""Acquire the lease of a run (step 1), which opens the driver's transactions and is renewed until
the driver ends."""

import logging
import os
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from agents.employees.models import ToolRule
from agents.platform.database_outages import OUTAGE_ERRORS, describe_outage
from agents.platform.error_boundary import log_and_continue
from agents.platform.queries.writes import update_rows
from agents.runs.engine.history import ConversationCache
from agents.runs.engine.next_step import ENGINE_FAILED, decide_next_step
from agents.runs.engine.timing import clock_s, timing
from agents.runs.engine.transaction import LostRace, Transaction, run_transaction
from agents.runs.models import Run, RunStatus
from agents.runs.queries.engine import DUE_RUN

logger = logging.getLogger(__name__)
OWNER = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
UNSUCCESSFUL = (RunStatus.FAILED, RunStatus.CANCELLED)
"""The statuses of a run for which side work is useless."""
_MUST_STOP = Q(cancel_requested_at__isnull=False) | ~Q(stopped_because="")
_IS_STOPPED = Q(organization__stopped_at__isnull=False) | Q(employee__stopped_at__isnull=False)
"""The condition for runs whose organization or employee is stopped; the row of an ended run does
not record this."""


class LeaseLost(Exception):
    """Another worker may drive this run, so the driver must stop immediately and must not write
    anything more."""


@dataclass(eq=False)
class RunWork:
    """Work for a run that may have to stop early.

    Attributes:
        stopped: set when the work must stop soon: the run was cancelled or stopped, or the worker
            shuts down.
    """

    run_id: int
    stopped: threading.Event = field(default_factory=threading.Event, kw_only=True)


@dataclass(eq=False)
class SideWork(RunWork):
    """Work that a tool does for a run in parallel with the run's driver, without a lease."""

    tool: str


@dataclass(eq=False)
class Lease(RunWork):
    """The right to drive one run until the lease expires; `stopped` is also set when another worker
    has taken the run.

    Attributes:
        slice_ends: the monotonic time after which the driver yields to other runs.
        alive_until: the monotonic time until which the heartbeat considers the driver alive.
        holds_until: the time of `clock_s` until which the lease is known to be valid.
        has_given_up: True if the driver failed and could not give the run back, so that the
            heartbeat has to.
        problem: a sentence about the database outage that made the driver give up.
        conversation: the recorded passes that the driver has loaded.
    """

    epoch: int
    slice_ends: float = 0.0
    alive_until: float = 0.0
    holds_until: float = 0.0
    has_given_up: bool = False
    problem: str = ""
    conversation: ConversationCache = field(default_factory=ConversationCache, repr=False)

    def expect_step(self, seconds: float) -> None:
        """Let the heartbeat renew the lease during a step of at most `seconds`."""
        self.alive_until = time.monotonic() + seconds + timing().slack_s

    def is_valid_for(self, run: Run) -> bool:
        """Return True if the locked run still has this lease."""
        return run.lease_epoch == self.epoch and run.lease_owner == OWNER

    @contextmanager
    def transaction(
        self, *, renews: bool = False, even_if_lost: bool = False
    ) -> Iterator[Transaction]:
        """Open a transaction on the run, and decide the run's next step when the block ends.

        No step is decided if the current step continues, or if the block has parked, ended or
        requeued the run.

        Args:
            renews: renew the lease with the commit.
            even_if_lost: proceed without the lease, because the block records a fact.

        Raises:
            LeaseLost: another worker may drive the run.
        """
        began = clock_s()
        with run_transaction(self.run_id) as tx:
            if not self.is_valid_for(tx.run) and not even_if_lost:
                raise LeaseLost(f"run {self.run_id}, epoch {self.epoch}")
            yield tx
            if self.is_valid_for(tx.run) and not tx.step_continues:
                tx.next_step = decide_next_step(
                    tx, is_shutting_down() or time.monotonic() >= self.slice_ends
                )
            is_renewed = renews and self.is_valid_for(tx.run)
            if is_renewed:
                tx.run.lease_expires_at = tx.now + timing().lease
        if is_renewed:
            self.note_renewal(began)

    def note_renewal(self, began: float) -> None:
        """Record that the lease was renewed at the time `began` of `clock_s`, or later."""
        self.holds_until = max(self.holds_until, began + timing().lease.total_seconds())

    def may_begin_effect(self) -> bool:
        """Return True while the lease is known to be valid for another heartbeat, so that no other
        worker has the run."""
        return clock_s() < self.holds_until - timing().heartbeat_s


def acquire(run_id: int) -> Lease | None:
    """Acquire the lease of a queued run that is due; return None if the run has a driver, is
    stopped, or is not due.

    A cancelled run that a worker requeued at its shutdown is due, too, because only a driver ends
    it.
    """
    began = clock_s()
    with transaction.atomic():
        due = DUE_RUN.fetch_one(run_id)
        if due is None:
            return None
        epoch = due.lease_epoch + 1
        columns = {
            "status": RunStatus.RUNNING.value,
            "lease_owner": OWNER,
            "lease_epoch": epoch,
            "lease_expires_at": due.now + timing().lease,
            "started_at": due.started_at or due.now,
            "next_wake_at": None,
            "hinted_at": None,
        }
        if update_rows(Run, columns, {"id": run_id, "lease_epoch": due.lease_epoch}) != 1:
            raise LostRace(f"run {run_id} was taken although it was locked")
    lease = Lease(run_id, epoch, slice_ends=time.monotonic() + timing().slice_s)
    lease.note_renewal(began)
    return lease


def give_back(lease: Lease, crashed: bool = False) -> None:
    """Put the run back into the queue for another worker; do nothing if the lease is lost.

    Args:
        crashed: True if the engine failed; such failures are counted.
    """
    try:
        with lease.transaction() as tx:
            run = tx.run
            tx.release_lease()
            run.status = RunStatus.QUEUED
            run.hinted_at = None
            run.problem = lease.problem or run.problem
            if crashed:
                run.crash_count += 1
                run.problem = ENGINE_FAILED
            if run.cancel_requested_at is None:
                run.next_wake_at = tx.now + timing().backoff(max(run.crash_count - 1, 0), None)
    except (LeaseLost, Run.DoesNotExist):
        logger.info("run %s: another worker has taken it", lease.run_id)


@contextmanager
def keep_renewing(lease: Lease) -> Iterator[None]:
    """Renew the lease while the block runs.

    If the block fails, the run goes back to the queue, and the failure is counted unless it is a
    database outage. While an outage lasts, the heartbeat keeps trying to give the run back.
    """
    heartbeat = _get_heartbeat()
    lease.expect_step(0)
    heartbeat.add(lease)
    try:
        yield
    finally:
        failure = sys.exception()
        if failure is not None and not isinstance(failure, LeaseLost):
            if condition := describe_outage(failure):
                lease.problem = f"{condition} The run went back to the queue."
                logger.warning("run %s: %s (%s)", lease.run_id, lease.problem, failure)
            lease.has_given_up = not _try_to_give_back(lease, crashed=not condition)
        if not lease.has_given_up:
            heartbeat.remove(lease)


def _try_to_give_back(lease: Lease, crashed: bool) -> bool:
    """Give the run back after a failure; return False if the database is unavailable."""
    connection.close()
    try:
        give_back(lease, crashed)
    except OUTAGE_ERRORS:
        return False
    return True


@contextmanager
def watch_side_work(run_id: int, tool: str) -> Iterator[threading.Event]:
    """Yield an event that is set once a tool's side work for the run is useless.

    That is the case if the run is cancelled or fails, or if the employee, the organization or the
    tool is stopped.
    """
    work = SideWork(run_id, tool)
    with _get_heartbeat().watching(work):
        if is_shutting_down():
            work.stopped.set()
        yield work.stopped


class _Heartbeat(threading.Thread):
    """Renews the leases of this process's runs, and stops drivers and side work that have to
    stop."""

    def __init__(self) -> None:
        super().__init__(name="gadget-heartbeat", daemon=True)
        self._leases: set[Lease] = set()
        self._side_work: set[SideWork] = set()
        self._lock = threading.Lock()

    def add(self, lease: Lease) -> None:
        with self._lock:
            self._leases.add(lease)

    def remove(self, lease: Lease) -> None:
        with self._lock:
            self._leases.discard(lease)

    def leases(self) -> list[Lease]:
        with self._lock:
            return list(self._leases)

    def side_work(self) -> list[SideWork]:
        with self._lock:
            return list(self._side_work)

    @contextmanager
    def watching(self, work: SideWork) -> Iterator[None]:
        with self._lock:
            self._side_work.add(work)
        try:
            yield
        finally:
            with self._lock:
                self._side_work.discard(work)

    def run(self) -> None:
        renewed = time.monotonic()
        while True:
            time.sleep(timing().cancel_poll_s)
            leases, side_work = self.leases(), self.side_work()
            if not leases and not side_work:
                continue
            with log_and_continue("heartbeat"):
                now = time.monotonic()
                if now - renewed >= timing().heartbeat_s:
                    self._renew(leases)
                    renewed = now
                _stop_matching(leases, _MUST_STOP)
                for tool in {each.tool for each in side_work}:
                    works = [each for each in side_work if each.tool == tool]
                    _stop_matching(works, _MUST_STOP | _match_useless_runs(tool))
            for lost in [each for each in leases if each.has_given_up]:
                with log_and_continue("giving back a run") as failure:
                    give_back(lost)
                    self.remove(lost)
                if failure.outage:
                    # Each further attempt could take as long, and valid leases must be renewed in
                    # the meantime.
                    break
            connection.close()

    def _renew(self, leases: list[Lease]) -> None:
        alive = [
            each for each in leases if time.monotonic() < each.alive_until and not each.has_given_up
        ]
        began = clock_s()
        with transaction.atomic():
            free = Run.objects.select_for_update(skip_locked=True, no_key=True)
            found = free.filter(pk__in={each.run_id for each in alive}).order_by("pk")
            runs = {run.pk: run for run in found.only("lease_owner", "lease_epoch")}
            mine = [
                each
                for each in alive
                if each.run_id in runs and each.is_valid_for(runs[each.run_id])
            ]
            Run.objects.filter(pk__in={each.run_id for each in mine}).update(
                lease_expires_at=Now() + timing().lease
            )
        for each in mine:
            each.note_renewal(began)
        for lost in [each for each in alive if each.run_id in runs and each not in mine]:
            lost.stopped.set()


def _match_useless_runs(tool: str) -> Q:
    """Match the runs for which side work of this tool is useless."""
    stopped = ToolRule.objects.filter(
        organization_id=OuterRef("organization_id"), tool=tool, stopped_at__isnull=False
    )
    return _IS_STOPPED | Q(status__in=UNSUCCESSFUL) | Q(Exists(stopped))


def _stop_matching(watched: Sequence[RunWork], to_stop: Q) -> None:
    if not watched:
        return
    runs = Run.objects.filter(to_stop, pk__in={each.run_id for each in watched})
    found = set(runs.values_list("pk", flat=True))
    for each in watched:
        if each.run_id in found:
            each.stopped.set()


@lru_cache(maxsize=1)
def _get_heartbeat() -> _Heartbeat:
    heartbeat = _Heartbeat()
    heartbeat.start()
    return heartbeat


def count_held_runs() -> int:
    """Count the runs that this process drives."""
    return len(_get_heartbeat().leases())


_shutting_down = False


def shut_down() -> None:
    """Shut this worker down: every driver stops at its next step and gives its run back.

    Signal handlers call this and may interrupt each other, so it must not take a lock: the second
    handler would deadlock.
    """
    global _shutting_down  # noqa: PLW0603
    if _shutting_down:
        return
    _shutting_down = True
    for each in (*_get_heartbeat().leases(), *_get_heartbeat().side_work()):
        each.stopped.set()


def is_shutting_down() -> bool:
    """Return True once this worker is shutting down."""
    return _shutting_down
