"""The receivers to which this process is currently sending."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from django.db.models import QuerySet

from agents.deliveries.outboxes import DeliveryBatch, Outbox

MAX_AT_ONE_HOST = 2
"""The maximum number of batches that one process sends to one host at the same time, so that a host
that hangs does not occupy all senders."""


class Receivers:
    """The receivers and hosts to which batches are being sent: at most one batch for each receiver,
    and at most two for each host."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy: set[tuple[str, int]] = set()
        self._hosts: Counter[str] = Counter()

    def exclude_busy(self, outbox: Outbox[Any, Any], due: QuerySet[Any]) -> QuerySet[Any]:
        """Leave out the deliveries whose receiver or host is busy."""
        with self._lock:
            ids = sorted(pk for field, pk in self._busy if field == outbox.receiver)
            hosts = [host for host, number in self._hosts.items() if number >= MAX_AT_ONE_HOST]
        if ids:
            due = due.exclude(**{f"{outbox.receiver}_id__in": ids})
        if hosts and outbox.host_column:
            due = due.exclude(**{f"{outbox.host_column}__in": hosts})
        return due

    def enter(self, batch: DeliveryBatch[Any, Any]) -> bool:
        """Register a batch that is about to be sent; return False if its receiver or host is
        busy."""
        host = batch.receiver.host
        with self._lock:
            if _name(batch) in self._busy or self._hosts[host] >= MAX_AT_ONE_HOST:
                return False
            self._busy.add(_name(batch))
            self._hosts.update([host] if host else [])
            return True

    def leave(self, batch: DeliveryBatch[Any, Any]) -> None:
        """Remove a batch that is no longer being sent."""
        host = batch.receiver.host
        with self._lock:
            self._busy.discard(_name(batch))
            self._hosts.subtract([host] if host else [])


def _name(batch: DeliveryBatch[Any, Any]) -> tuple[str, int]:
    return batch.outbox.receiver, batch.receiver.pk
