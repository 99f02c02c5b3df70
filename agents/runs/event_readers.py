"""Readers of a run's events: they see each event in the transaction that writes it.

A reader stands above the runs and adds itself when it is ready.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from agents.runs.models import Event, Run


@dataclass(frozen=True)
class EventReader:
    """A reader of events.

    Attributes:
        select: the rows by which an organization asks for it, selected by `organization_id`; without one, it reads
            nothing of that organization.
        read: called with the run, whose row is locked, and its new events.
    """

    select: Callable[[int | OuterRef], QuerySet[Any]]
    read: Callable[[Run, Sequence[Event]], None]


READERS: list[EventReader] = []


def match_read() -> Q:
    """Return the condition that a run's organization has asked for a reader; the lock of a run reads it along."""
    return Q(*[Exists(reader.select(OuterRef("organization_id"))) for reader in READERS], _connector=Q.OR)


def is_read(organization_id: int) -> bool:
    """Return True if the organization has asked for a reader."""
    return any(reader.select(organization_id).exists() for reader in READERS)
