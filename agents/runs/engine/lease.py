"""Step 1 of a run: claim it. Also the lease, its transactions, the heartbeat that renews it, and giving it back."""

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
from agents.platform.boundaries import surviving
from agents.platform.database_condition import UNAVAILABLE, condition_of
from agents.platform.queries.engine import DUE_RUN
from agents.platform.statements import update
from agents.runs.engine.history import ConversationCache
from agents.runs.engine.next_step import ENGINE_FAILED, settle
from agents.runs.engine.timing import clock_s, timing
from agents.runs.engine.transaction import LostRace, Transaction, run_transaction
from agents.runs.models import Run, RunStatus

logger = logging.getLogger(__name__)

OWNER = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"


class LeaseLost(Exception):
    """Another worker may drive this run by now: stop at once and write nothing more."""


@dataclass(eq=False)
class RunWork:
    """Work that is done for a run.

    Attributes:
        stopped: set when the work must stop soon: run cancelled or stopped, or worker leaving.
    """

    run_id: int
    stopped: threading.Event = field(default_factory=threading.Event, kw_only=True)


@dataclass(eq=False)
class SideWork(RunWork):
    """Work of a tool beside a run, whoever drives the run."""

    tool: str


@dataclass(eq=False)
class Lease(RunWork):
    """The right to drive one run, until the lease expires unrenewed, which stops its driver too.

    Attributes:
        slice_ends: monotonic time after which other runs get their turn.
        alive_until: monotonic time until which the heartbeat takes the driver for alive.
        holds_until: the lease held at least until then, by `clock_s`, when it was last taken or renewed.
        problem: why the driver gives up: the condition of the database.
        conversation: the part of the run that its driver has read.
    """

    epoch: int
    slice_ends: float = 0.0
    alive_until: float = 0.0
    holds_until: float = 0.0
    gives_up: bool = False
    problem: str = ""
    conversation: ConversationCache = field(default_factory=ConversationCache, repr=False)

    def expect_step(self, seconds: float) -> None:
        """Let the heartbeat keep the lease through a step that may take so long."""
        self.alive_until = time.monotonic() + seconds + timing().slack_s

    def holds(self, run: Run) -> bool:
        """Return True if the run, read under its lock, is still this driver's."""
        return run.lease_epoch == self.epoch and run.lease_owner == OWNER

    @contextmanager
    def transaction(self, *, renews: bool = False, even_if_lost: bool = False) -> Iterator[Transaction]:
        """Open a transaction on the run; on exit, and only here, its next step is decided.

        Nothing is decided for a run that the block has parked, ended or requeued, nor in the middle of a step.

        Args:
            renews: the commit renews the lease.
            even_if_lost: what the block writes is a fact, whoever drives the run by now.

        Raises:
            LeaseLost: another worker may drive the run.
        """
        began = clock_s()
        with run_transaction(self.run_id) as tx:
            if not self.holds(tx.run) and not even_if_lost:
                raise LeaseLost(f"run {self.run_id}, epoch {self.epoch}")
            yield tx
            if self.holds(tx.run) and not tx.is_midway:
                tx.next_step = settle(tx, is_going_down() or time.monotonic() >= self.slice_ends)
            is_renewed = renews and self.holds(tx.run)
            if is_renewed:
                tx.run.lease_expires_at = tx.now + timing().lease
        if is_renewed:
            self.note_renewal(began)

    def note_renewal(self, began: float) -> None:
        """Note that the lease was renewed by a transaction that began at this time of the clock, or after it."""
        self.holds_until = max(self.holds_until, began + timing().lease.total_seconds())

    def may_begin_effect(self) -> bool:
        """Return True while the lease is known to hold for another heartbeat, so that nobody can have taken the run."""
        return clock_s() < self.holds_until - timing().heartbeat_s


def claim(run_id: int) -> Lease | None:
    """Take a queued run that is due; None if somebody has it or stopped it, or there is nothing to do.

    A cancelled run that a leaving worker requeued is taken too: the first act of its driver is to end it.
    """
    began = clock_s()
    with transaction.atomic():
        due = DUE_RUN.row(run_id)
        if due is None:
            return None
        epoch = due.lease_epoch + 1
        taken = {
            "status": RunStatus.RUNNING.value,
            "lease_owner": OWNER,
            "lease_epoch": epoch,
            "lease_expires_at": due.now + timing().lease,
            "started_at": due.started_at or due.now,
            "next_wake_at": None,
            "hinted_at": None,
        }
        if update(Run, taken, {"id": run_id, "lease_epoch": due.lease_epoch}) != 1:
            raise LostRace(f"run {run_id} was taken although it was locked")
    lease = Lease(run_id, epoch, slice_ends=time.monotonic() + timing().slice_s)
    lease.note_renewal(began)
    return lease


def give_back(lease: Lease, crashed: bool = False) -> None:
    """Requeue the run for the next worker to recover; do nothing if the lease is lost already."""
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
        logger.info("run %s was taken over", lease.run_id)


class _Heartbeat(threading.Thread):
    """Renews the leases of this process's runs, and stops their drivers, and work beside them, when they have to."""

    def __init__(self) -> None:
        super().__init__(name="gadget-heartbeat", daemon=True)
        self._leases: set[Lease] = set()
        self._side_work: set[SideWork] = set()
        self._lock = threading.Lock()
        self._left = threading.Event()

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
        while not self._left.wait(timing().cancel_poll_s):
            leases, side_work = self.leases(), self.side_work()
            if not leases and not side_work:
                continue
            with surviving("heartbeat"):
                now = time.monotonic()
                if now - renewed >= timing().heartbeat_s:
                    self._renew(leases)
                    renewed = now
                _stop_where(leases, _HAS_TO_STOP)
                for tool in {each.tool for each in side_work}:
                    _stop_where([each for each in side_work if each.tool == tool], _HAS_TO_STOP | _is_over_for(tool))
            for lost in [each for each in leases if each.gives_up]:
                with surviving("giving back a run") as survived:
                    give_back(lost)
                    self.remove(lost)
                if survived.condition:
                    break  # each of the others would wait as long, and the living wait for their renewal
            connection.close()

    def _renew(self, leases: list[Lease]) -> None:
        alive = [each for each in leases if time.monotonic() < each.alive_until and not each.gives_up]
        began = clock_s()
        with transaction.atomic():
            free = Run.objects.select_for_update(skip_locked=True, no_key=True)
            found = free.filter(pk__in={each.run_id for each in alive}).order_by("pk")
            runs = {run.pk: run for run in found.only("lease_owner", "lease_epoch")}
            mine = [each for each in alive if each.run_id in runs and each.holds(runs[each.run_id])]
            Run.objects.filter(pk__in={each.run_id for each in mine}).update(lease_expires_at=Now() + timing().lease)
        for each in mine:
            each.note_renewal(began)
        for lost in [each for each in alive if each.run_id in runs and each not in mine]:
            lost.stopped.set()


_HAS_TO_STOP = Q(cancel_requested_at__isnull=False) | ~Q(stopped_because="")
_IS_STOPPED = Q(organization__stopped_at__isnull=False) | Q(employee__stopped_at__isnull=False)
"""Holds for a run that has ended, too, whose row is not told of a stop."""
UNSUCCESSFUL = (RunStatus.FAILED, RunStatus.CANCELLED)
"""Work beside a run with one of these is in vain."""


def _is_over_for(tool: str) -> Q:
    """Match the runs beside which this tool has nothing more to do."""
    stopped = ToolRule.objects.filter(organization_id=OuterRef("organization_id"), tool=tool, stopped_at__isnull=False)
    return _IS_STOPPED | Q(status__in=UNSUCCESSFUL) | Q(Exists(stopped))


def _stop_where(watched: Sequence[RunWork], to_stop: Q) -> None:
    if not watched:
        return
    runs = Run.objects.filter(to_stop, pk__in={each.run_id for each in watched})
    found = set(runs.values_list("pk", flat=True))
    for each in watched:
        if each.run_id in found:
            each.stopped.set()


_going_down = False


@lru_cache(maxsize=1)
def _get_heartbeat() -> _Heartbeat:
    heartbeat = _Heartbeat()
    heartbeat.start()
    return heartbeat


def count_held_runs() -> int:
    """Count the runs that this process drives."""
    return len(_get_heartbeat().leases())


@contextmanager
def keep_renewing(lease: Lease) -> Iterator[None]:
    """Renew the lease while the block runs.

    If the engine fails in it, the run goes back to the queue and the failure is counted. If it is the database's
    condition, nothing is counted, and the heartbeat gives the run back once the database allows it.
    """
    heartbeat = _get_heartbeat()
    lease.expect_step(0)
    heartbeat.add(lease)
    try:
        yield
    finally:
        failure = sys.exception()
        if failure is not None and not isinstance(failure, LeaseLost):
            if condition := condition_of(failure):
                lease.problem = f"{condition} The run went back to the queue."
                logger.warning("run %s: %s (%s)", lease.run_id, lease.problem, failure)
            lease.gives_up = not _try_to_give_back(lease, crashed=not condition)
        if not lease.gives_up:
            heartbeat.remove(lease)


def _try_to_give_back(lease: Lease, crashed: bool) -> bool:
    """Give the run back after a failure; False if the database does not allow it now."""
    connection.close()
    try:
        give_back(lease, crashed)
    except UNAVAILABLE:
        return False
    return True


@contextmanager
def watch_side_work(run_id: int, tool: str) -> Iterator[threading.Event]:
    """Yield an event for a tool's work beside a run, which holds no lease; it is set once the work is in vain.

    It is set when the run is cancelled or fails, or when the run, its employee, everything or the tool is stopped.
    """
    work = SideWork(run_id, tool)
    with _get_heartbeat().watching(work):
        if is_going_down():
            work.stopped.set()
        yield work.stopped


def go_down() -> None:
    """Let this worker leave: every driver stops at its next step and gives its run back.

    Signal handlers call it, and one may interrupt the other: so it uses a plain flag, without a lock.
    """
    global _going_down  # noqa: PLW0603
    if _going_down:
        return
    _going_down = True
    for each in (*_get_heartbeat().leases(), *_get_heartbeat().side_work()):
        each.stopped.set()


def is_going_down() -> bool:
    """Return True once this worker was told to leave."""
    return _going_down
