"""Who drives a run: the claim, the heartbeat that keeps it, and giving it back."""

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
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from agents.boundaries import surviving
from agents.database_condition import UNAVAILABLE, condition_of
from agents.engine import clock
from agents.engine.past import Past
from agents.engine.timing import timing
from agents.events import LostRace, Recording, recording
from agents.models import Employee, Organization, Run, RunStatus, ToolRule
from agents.statements import Prepared, update

logger = logging.getLogger(__name__)

ENGINE_FAILED = "The engine failed; its log says why."
OWNER = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"


class LeaseLost(Exception):
    """Another worker may drive this run by now: stop at once and write nothing more."""


@dataclass(eq=False)
class Watch:
    """Something that is done for a run.

    Attributes:
        stopped: set when it must stop soon: run cancelled or stopped, or worker going down.
    """

    run_id: int
    stopped: threading.Event = field(default_factory=threading.Event, kw_only=True)


@dataclass(eq=False)
class Beside(Watch):
    """Something that a tool does beside a run, whoever drives it."""

    tool: str


@dataclass(eq=False)
class Claim(Watch):
    """The right to drive one run, until the lease expires unrenewed, which stops its driver too.

    Attributes:
        slice_ends: monotonic time after which other runs get their turn.
        moves_by: monotonic time until which the heartbeat takes the driver for alive.
        holds_until: the lease held at least until then, by `clock`, when it was last seen to be taken or renewed.
        problem: why the driver gives up: the condition of the database.
        past: the part of the run that its driver has read.
    """

    epoch: int
    slice_ends: float = 0.0
    moves_by: float = 0.0
    holds_until: float = 0.0
    gives_up: bool = False
    problem: str = ""
    past: Past = field(default_factory=Past, repr=False)

    def expects(self, seconds: float) -> None:
        """The next step may take so long; the heartbeat keeps the lease meanwhile."""
        self.moves_by = time.monotonic() + seconds + timing().slack_s

    def holds(self, run: Run) -> bool:
        """True if the run, read under its lock, is still this driver's; one that is not running has no owner."""
        return run.lease_epoch == self.epoch and run.lease_owner == OWNER

    @contextmanager
    def recording(self) -> Iterator[Recording]:
        """A transaction on the run that this claim holds.

        Raises:
            LeaseLost: it does not hold it any more.
        """
        with recording(self.run_id) as record:
            if not self.holds(record.run):
                raise LeaseLost(f"run {self.run_id}, epoch {self.epoch}")
            yield record

    @contextmanager
    def renewing(self) -> Iterator[Recording]:
        """Open a transaction as in `recording`, whose commit renews the lease."""
        began = clock.now_s()
        with self.recording() as record:
            yield record
            is_held = self.holds(record.run)
            if is_held:
                record.run.lease_expires_at = record.now + timing().lease
        if is_held:
            self.note_renewal(began)

    def note_renewal(self, began: float) -> None:
        """Note that the lease was renewed by a transaction that began at this time of the clock, or after it."""
        self.holds_until = max(self.holds_until, began + timing().lease.total_seconds())

    def may_begin_effect(self) -> bool:
        """Return True while the lease is known to hold for another heartbeat, so that nobody can have taken the run."""
        return clock.now_s() < self.holds_until - timing().heartbeat_s


_STOPPED_ORGANIZATION = Organization.objects.filter(pk=OuterRef("organization_id"), stopped_at__isnull=False)
_STOPPED_EMPLOYEE = Employee.objects.filter(pk=OuterRef("employee_id"), stopped_at__isnull=False)


_DUE = Prepared(
    lambda run_id: (
        Run.objects.filter(
            Q(next_wake_at__isnull=True) | Q(next_wake_at__lte=Now()),
            Q(~Exists(_STOPPED_ORGANIZATION), ~Exists(_STOPPED_EMPLOYEE), stopped_because="")
            | Q(cancel_requested_at__isnull=False),
            pk=run_id,
            status=RunStatus.QUEUED,
        )
        .order_by()
        .select_for_update(no_key=True)
        .values_list("lease_epoch", "started_at", Now())
    )
)


def due_runs() -> QuerySet[Run]:
    """Return queued runs that are due and not stopped."""
    return Run.objects.filter(
        Q(next_wake_at=None) | Q(next_wake_at__lte=Now()),
        Q(stopped_because="") | Q(cancel_requested_at__isnull=False),
        status=RunStatus.QUEUED,
    )


def claim(run_id: int) -> Claim | None:
    """Take a queued run whose time has come; None if somebody has it or stopped it, or there is nothing to do.

    A cancelled run that a leaving worker put back is taken too: the first thing its driver does is to end it.
    """
    began = clock.now_s()
    with transaction.atomic():
        due = _DUE.rows(run_id)
        if not due:
            return None
        epoch, started_at, now = due[0]
        taken = {
            "status": RunStatus.RUNNING.value,
            "lease_owner": OWNER,
            "lease_epoch": epoch + 1,
            "lease_expires_at": now + timing().lease,
            "started_at": started_at or now,
            "next_wake_at": None,
            "hinted_at": None,
        }
        if update(Run, taken, {"id": run_id, "lease_epoch": epoch}) != 1:
            raise LostRace(f"run {run_id} was taken although it was locked")
    held = Claim(run_id, epoch + 1, slice_ends=time.monotonic() + timing().slice_s)
    held.note_renewal(began)
    return held


def drop(run: Run) -> None:
    """The run is not driven any more (to be written by the recording that it belongs to)."""
    run.lease_owner = ""
    run.lease_expires_at = None


def give_back(held: Claim, crashed: bool = False) -> None:
    """Put the run back into the queue, for the next worker to recover; silently nothing if it is lost already."""
    try:
        with held.recording() as record:
            run = record.run
            drop(run)
            run.status = RunStatus.QUEUED
            run.hinted_at = None
            run.problem = held.problem or run.problem
            if crashed:
                run.crash_count += 1
                run.problem = ENGINE_FAILED
            if run.cancel_requested_at is None:
                run.next_wake_at = record.now + timing().backoff(max(run.crash_count - 1, 0), None)
    except (LeaseLost, Run.DoesNotExist):
        logger.info("run %s was taken over", held.run_id)


class _Heartbeat(threading.Thread):
    """Renews the leases of this process' runs, and tells their drivers, and who works beside them, to stop."""

    def __init__(self) -> None:
        super().__init__(name="gadget-heartbeat", daemon=True)
        self._held: set[Claim] = set()
        self._beside: set[Beside] = set()
        self._lock = threading.Lock()
        self._left = threading.Event()

    def add(self, held: Claim) -> None:
        with self._lock:
            self._held.add(held)

    def remove(self, held: Claim) -> None:
        with self._lock:
            self._held.discard(held)

    def all(self) -> list[Claim]:
        with self._lock:
            return list(self._held)

    def beside(self) -> list[Beside]:
        with self._lock:
            return list(self._beside)

    @contextmanager
    def watching(self, watch: Beside) -> Iterator[None]:
        with self._lock:
            self._beside.add(watch)
        try:
            yield
        finally:
            with self._lock:
                self._beside.discard(watch)

    def run(self) -> None:
        renewed = time.monotonic()
        while not self._left.wait(timing().cancel_poll_s):
            held, beside = self.all(), self.beside()
            if not held and not beside:
                continue
            with surviving("heartbeat"):
                now = time.monotonic()
                if now - renewed >= timing().heartbeat_s:
                    self._renew(held)
                    renewed = now
                _stop_those_told(held, _TOLD)
                for tool in {each.tool for each in beside}:
                    _stop_those_told([each for each in beside if each.tool == tool], _TOLD | _is_over_for(tool))
            for lost in [each for each in held if each.gives_up]:
                with surviving("giving back a run") as survived:
                    give_back(lost)
                    self.remove(lost)
                if survived.condition:
                    break  # each of the others would wait as long, and the living wait for their renewal
            connection.close()

    def _renew(self, held: list[Claim]) -> None:
        alive = [each for each in held if time.monotonic() < each.moves_by and not each.gives_up]
        began = clock.now_s()
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


_TOLD = Q(cancel_requested_at__isnull=False) | ~Q(stopped_because="")
_IS_STOPPED = Q(organization__stopped_at__isnull=False) | Q(employee__stopped_at__isnull=False)
"""True also of a run that has ended, which nobody tells."""
UNSUCCESSFUL = (RunStatus.FAILED, RunStatus.CANCELLED)
"""Of a run with one of these, nothing that is done beside it is wanted any more."""


def _is_over_for(tool: str) -> Q:
    """Whether this tool has nothing more to do beside a run."""
    stopped = ToolRule.objects.filter(organization_id=OuterRef("organization_id"), tool=tool, stopped_at__isnull=False)
    return _IS_STOPPED | Q(status__in=UNSUCCESSFUL) | Q(Exists(stopped))


def _stop_those_told(watched: Sequence[Watch], to_stop: Q) -> None:
    if not watched:
        return
    runs = Run.objects.filter(to_stop, pk__in={each.run_id for each in watched})
    found = set(runs.values_list("pk", flat=True))
    for each in watched:
        if each.run_id in found:
            each.stopped.set()


_going_down = False


@lru_cache(maxsize=1)
def _beating() -> _Heartbeat:
    heartbeat = _Heartbeat()
    heartbeat.start()
    return heartbeat


def count_held_runs() -> int:
    """Count the runs that this process drives."""
    return len(_beating().all())


@contextmanager
def kept(held: Claim) -> Iterator[None]:
    """Renew the lease while the block runs.

    If the engine fails in it, the run goes back to the queue and the failure is counted. If it is the database's
    condition, nothing is counted, and the heartbeat gives the run back once the database allows it.
    """
    heartbeat = _beating()
    held.expects(0)
    heartbeat.add(held)
    try:
        yield
    finally:
        failure = sys.exception()
        if failure is not None and not isinstance(failure, LeaseLost):
            if condition := condition_of(failure):
                held.problem = f"{condition} The run went back to the queue."
                logger.warning("run %s: %s (%s)", held.run_id, held.problem, failure)
            held.gives_up = not _given_back(held, crashed=not condition)
        if not held.gives_up:
            heartbeat.remove(held)


def _given_back(held: Claim, crashed: bool) -> bool:
    """Give the run back after a failure; False if the database does not allow it now."""
    connection.close()
    try:
        give_back(held, crashed)
    except UNAVAILABLE:
        return False
    return True


@contextmanager
def watched(run_id: int, tool: str) -> Iterator[threading.Event]:
    """For a tool's work beside a run, which holds no lease: an event that is set once nobody wants it any more.

    That is when the run is cancelled or fails, or when it, its employee, everything or the tool is stopped.
    """
    watch = Beside(run_id, tool)
    with _beating().watching(watch):
        if is_going_down():
            watch.stopped.set()
        yield watch.stopped


def go_down() -> None:
    """The worker is leaving: every driver stops at its next step and gives its run back.

    Handlers of signals call it, and one may interrupt the other: so it goes by a plain flag, without a lock.
    """
    global _going_down  # noqa: PLW0603
    if _going_down:
        return
    _going_down = True
    for each in (*_beating().all(), *_beating().beside()):
        each.stopped.set()


def is_going_down() -> bool:
    """True once this worker was told to leave."""
    return _going_down
