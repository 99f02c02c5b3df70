"""The only door to events, and the only way to change a run: lock it, look, change, publish, commit, ring."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from agents import audit, hints
from agents.models import Event, EventType, Run, RunStatus
from agents.statements import Prepared, columns_of, insert, row_of, update
from tools.contract import canonical_json

MOST_DATA_BYTES = 4096
MOST_SUMMARY = 1000

_RUN_FIELDS = tuple(field.attname for field in Run._meta.concrete_fields if field.attname != "id")


def _locked(run_id: int, wait: bool) -> QuerySet[Run, Any]:
    free = Run.objects.filter(pk=run_id).order_by().select_for_update(no_key=True, skip_locked=not wait)
    return free.values_list(*columns_of(Run), Now())


_LOCKED = Prepared(partial(_locked, wait=True))
_LOCKED_IF_FREE = Prepared(partial(_locked, wait=False))


class LostRace(RuntimeError):
    """The run's row changed although it was locked: the database does not lock as it should."""


class Recording:
    """One transaction on one run: change `run`'s attributes, `publish` what happened, `audit` who did it.

    `now` is the database's time when the run was locked.

    Everything is written when the block ends: events first, then the run's row, the audit chain last.
    """

    def __init__(self, run: Run, now: datetime) -> None:
        self.run = run
        self.now = now
        self.inbox_changed = False
        self._before = {name: getattr(run, name) for name in _RUN_FIELDS}
        self._events: list[Event] = []
        self._entries: list[audit.Entry] = []

    def publish(self, type_: EventType, **payload: Any) -> int:
        """Add a line to the panel; returns its number."""
        seq = self.run.next_event_seq
        self.run.next_event_seq = seq + 1
        self._events.append(Event(run_id=self.run.pk, seq=seq, type=type_.value, payload=payload))
        return seq

    def audit(self, actor: str, action: str, subject: str, **payload: Any) -> None:
        """Add an entry to the audit chain."""
        self._entries.append(audit.Entry(actor, action, subject, payload))

    def write(self) -> None:
        """Write what was gathered, and ring after the commit."""
        run = self.run
        changed = {name: value for name in _RUN_FIELDS if (value := getattr(run, name)) != self._before[name]}
        insert(self._events)
        if changed:
            same = {name: self._before[name] for name in ("lease_epoch", "next_event_seq")}
            if update(Run, changed, {"id": run.pk, **same}) != 1:
                raise LostRace(f"run {run.pk} changed while it was locked")
        if self._entries:
            audit.append(run.organization_id, self._entries)
        self._ring_after_commit("status" in changed)

    def _ring_after_commit(self, status_changed: bool) -> None:
        run = self.run
        if status_changed and run.status == RunStatus.QUEUED and run.next_wake_at is None:
            transaction.on_commit(partial(hints.wake, run.pk))
        if self._events:
            transaction.on_commit(partial(hints.ring_run, run.pk))
        if self.inbox_changed:
            transaction.on_commit(partial(hints.ring_inbox, run.organization_id))


@contextmanager
def recording(run_id: int, wait: bool = True) -> Iterator[Recording]:
    """Lock the run's row first, then let the caller look and change; one commit, or nothing.

    Raises:
        Run.DoesNotExist: there is no such run, or without `wait`, somebody else has locked it.
    """
    with transaction.atomic():
        locked = (_LOCKED if wait else _LOCKED_IF_FREE).rows(run_id)
        if not locked:
            raise Run.DoesNotExist(f"run {run_id} is not there, or not free")
        record = Recording(row_of(Run, locked[0][:-1]), locked[0][-1])
        yield record
        record.write()


@contextmanager
def starting(run: Run) -> Iterator[Recording]:
    """Insert a new run and let the caller publish its first events, in one commit."""
    with transaction.atomic():
        run.save(force_insert=True)
        record = Recording(run, run.created_at)
        yield record
        record.write()
        if run.status == RunStatus.QUEUED:
            transaction.on_commit(partial(hints.wake, run.pk))
        if run.is_unnamed:
            transaction.on_commit(partial(hints.name_run, run.pk))


def brief_params(params: dict[str, Any]) -> dict[str, Any]:
    """`params` as an event carries them; beyond 4 KB they are left on the call and marked `truncated`."""
    if len(canonical_json(params).encode()) > MOST_DATA_BYTES:
        return {"params": {}, "truncated": True}
    return {"params": params}


def brief(result: dict[str, Any]) -> dict[str, Any]:
    """A result as an event carries it: data beyond 4 KB is left on the call and marked `truncated`."""
    told = {key: result[key] for key in ("success", "summary", "data", "markdown", "error", "metadata")}
    if len(told["summary"]) > MOST_SUMMARY:
        told.update(summary=told["summary"][:MOST_SUMMARY], truncated=True)
    if told["error"] and len(told["error"]["message"]) > MOST_SUMMARY:
        error = {**told["error"], "message": told["error"]["message"][:MOST_SUMMARY]}
        told.update(error=error, truncated=True)
    if len(canonical_json(told["metadata"]).encode()) > MOST_DATA_BYTES:
        told.update(metadata={}, truncated=True)
    if len(canonical_json([told["data"], told["markdown"]]).encode()) > MOST_DATA_BYTES:
        told.update(data=None, markdown="", truncated=True)
    return told
