"""The transaction on a run: lock the row, let the block change the run, then write the row, the
events and the audit entries together."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any

from django.db import transaction

from agents.accounts import audit
from agents.platform import notify
from agents.platform.queries.writes import insert_rows, update_rows
from agents.runs.events import RunEvent
from agents.runs.models import Event, ExitReason, Run, RunStatus
from agents.runs.models.event import AWAITED
from agents.runs.queries.runs import LOCKED_RUN, LOCKED_RUN_IF_FREE
from tools.contract.correlation import get_correlation_id

_RUN_FIELDS = tuple(field.attname for field in Run._meta.concrete_fields if field.attname != "id")

MACHINE = "gadget"
"""The actor's name for actions that no person takes."""


class Action(StrEnum):
    """The kinds of steps that a driver takes."""

    RUN_APPROVED = "run_approved"
    """Run an approved call whose grace period is over."""
    RUN_READY = "run_ready"
    """Run the calls that need no approval."""
    EXPAND = "expand"
    """Advance a recipe by one step."""
    ASK = "ask"
    """Call the model."""
    ASK_FOR_ANSWER = "ask_for_answer"
    """Ask the model for an answer without calls, which ends the run: the closing pass."""
    LEAVE = "leave"
    """Leave the run: it waits, has ended, or yields to other runs."""


@dataclass(frozen=True)
class NextStep:
    """The next step of a run's driver.

    Attributes:
        reason: the exit reason of the run after a closing pass.
        deadline: the monotonic time at which the run must end.
    """

    action: Action
    reason: ExitReason = ExitReason.FINAL_ANSWER
    deadline: float = math.inf


NO_STEP = NextStep(Action.LEAVE)


class LostRace(RuntimeError):
    """A locked row was changed, so the database does not lock rows as expected."""


class Transaction:
    """A transaction on one run: its block can change attributes of `run`, `publish` events and
    `audit` actions.

    Attributes:
        now: the database's time when the run was locked.
        inbox_changed: set by the block if a card is created or closed.
        step_continues: set by the block in the middle of a step, such as while calls execute, so
            that no next step is decided.
        next_step: decided on exit if the transaction is a driver's.
        locked_counts: the tools whose calls no other run of the employee can count until the
            commit.
    """

    def __init__(self, run: Run, now: datetime) -> None:
        self.run = run
        self.now = now
        self.inbox_changed = False
        self.step_continues = False
        self.next_step = NO_STEP
        self.locked_counts: set[str] = set()
        self._before = {name: getattr(run, name) for name in _RUN_FIELDS}
        self._events: list[Event] = []
        self._entries: list[audit.NewEntry] = []

    @property
    def is_late(self) -> bool:
        """True once the run's deadline has passed."""
        return self.run.deadline_at is not None and self.run.deadline_at <= self.now

    def publish(self, event: RunEvent) -> int:
        """Add an event, to be written on exit; return its number."""
        seq = self.run.next_event_seq
        self.run.next_event_seq = seq + 1
        self._events.append(
            Event(run_id=self.run.pk, seq=seq, type=event.type.value, payload=event.payload)
        )
        return seq

    def audit(self, actor: str, action: str, subject: str, **payload: Any) -> None:
        """Add an entry to the audit chain, to be written last."""
        self._entries.append(audit.NewEntry(actor, action, subject, payload))

    def release_lease(self) -> None:
        """Release the driver's lease."""
        self.run.lease_owner = ""
        self.run.lease_expires_at = None

    def requeue(self) -> None:
        """Release the lease and put the run into the queue, due immediately."""
        self.release_lease()
        self.run.status = RunStatus.QUEUED
        self.run.next_wake_at = None
        self.run.hinted_at = None

    def write(self) -> None:
        """Write the events, the row and the audit entries, and send hints after the commit."""
        run = self.run
        changed = {
            name: value
            for name in _RUN_FIELDS
            if (value := getattr(run, name)) != self._before[name]
        }
        insert_rows(self._events)
        if changed:
            expected = {name: self._before[name] for name in ("lease_epoch", "next_event_seq")}
            if update_rows(Run, changed, {"id": run.pk, **expected}) != 1:
                raise LostRace(f"run {run.pk} changed while it was locked")
        if self._entries:
            audit.append(run.organization_id, self._entries)
        if "status" in changed and run.status == RunStatus.QUEUED and run.next_wake_at is None:
            transaction.on_commit(partial(notify.wake_run, run.pk))
        if self._events:
            transaction.on_commit(partial(notify.ring_run, run.pk))
        if any(event.type in AWAITED for event in self._events):
            transaction.on_commit(notify.request_reading)
        if self.inbox_changed:
            transaction.on_commit(partial(notify.ring_inbox, run.organization_id))


@contextmanager
def run_transaction(run_id: int, wait: bool = True) -> Iterator[Transaction]:
    """Lock the run's row, let the block read and change the run, and commit everything or nothing.

    Raises:
        Run.DoesNotExist: there is no such run, or `wait` is False and another transaction has
            locked it.
    """
    with transaction.atomic():
        locked = (LOCKED_RUN if wait else LOCKED_RUN_IF_FREE).fetch_one(run_id)
        if locked is None:
            raise Run.DoesNotExist(f"run {run_id} does not exist or is locked")
        tx = Transaction(locked.run, locked.now)
        yield tx
        tx.write()


@contextmanager
def new_run_transaction(run: Run) -> Iterator[Transaction]:
    """Insert a new run and let the block publish its first events, in one commit."""
    run.correlation_id = run.correlation_id or get_correlation_id()
    with transaction.atomic():
        run.save(force_insert=True)
        tx = Transaction(run, run.created_at)
        yield tx
        tx.write()
        if run.status == RunStatus.QUEUED:
            transaction.on_commit(partial(notify.wake_run, run.pk))
        if run.is_unnamed:
            transaction.on_commit(partial(notify.request_title, run.pk))
