"""Changes of deliveries that people and subjects ask for: end, send again, delete."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from agents.deliveries.models import MAX_PROBLEM, DeliveryStatus
from agents.platform import notify

_STEPS = 20


def end_deliveries(rows: QuerySet[Any], status: str, problem: str) -> int:
    """End the deliveries that wait among these; return their number."""
    waiting = rows.filter(status=DeliveryStatus.WAITING)
    return waiting.update(status=status, ended_at=Now(), problem=problem[:MAX_PROBLEM])


def send_again(rows: QuerySet[Any], **fresh: Any) -> int:
    """Restart ended deliveries, and ask the workers to send them; return their number.

    Args:
        fresh: further columns to reset.
    """
    transaction.on_commit(notify.request_delivery)
    return rows.exclude(status=DeliveryStatus.WAITING).update(
        status=DeliveryStatus.WAITING, ended_at=None, due_at=Now(), tries=0, **fresh
    )


def delete_deliveries(rows: QuerySet[Any], at_once: int) -> int:
    """Delete deliveries in short transactions, and leave the rest to the next time; return their number."""
    deleted = 0
    for _ in range(_STEPS):
        found = list(rows.order_by().values_list("pk", flat=True)[:at_once])
        deleted += rows.model._default_manager.filter(pk__in=found).delete()[0]
        if len(found) < at_once:
            break
    return deleted
