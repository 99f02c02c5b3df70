"""Changes of deliveries that people and subjects ask for: end, send again, delete."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from agents.accounts.models import Membership
from agents.deliveries.models import MAX_PROBLEM, DeliveryStatus
from agents.deliveries.outboxes import OUTBOXES
from agents.platform import notify
from agents.platform.refusals import Conflict
from agents.platform.row_ids import get_row

_STEPS = 20


def end_deliveries(rows: QuerySet[Any], status: str, problem: str) -> int:
    """End those of the given deliveries that still wait; return how many."""
    waiting = rows.filter(status=DeliveryStatus.WAITING)
    return waiting.update(status=status, ended_at=Now(), problem=problem[:MAX_PROBLEM])


def send_again(member: Membership, kind: str, delivery_id: int) -> Any:
    """Let a delivery that has ended begin anew, with the same id, and ask the workers to send it.

    Args:
        kind: the kind of its channel.

    Raises:
        Forbidden: the member sees none of these deliveries.
        NotFound: the member sees no such delivery.
        Conflict: its state, or that of its receiver, does not allow it.
    """
    outbox = OUTBOXES[kind]
    with transaction.atomic():
        delivery = get_row(outbox.select_visible(member), delivery_id, outbox.noun)
        fresh = outbox.begin_again(member, delivery)
        ended = outbox.select_all().filter(pk=delivery_id, status__in=outbox.repeatable)
        if not ended.update(
            status=DeliveryStatus.WAITING, ended_at=None, due_at=Now(), tries=0, **fresh
        ):
            raise Conflict(f"This {outbox.noun} {outbox.other_state}.")
        transaction.on_commit(notify.request_delivery)
    return delivery


def delete_deliveries(rows: QuerySet[Any], at_once: int) -> int:
    """Delete deliveries in short transactions, and leave the rest to the next time; return their
    number."""
    deleted = 0
    for _ in range(_STEPS):
        found = list(rows.order_by().values_list("pk", flat=True)[:at_once])
        deleted += rows.model._default_manager.filter(pk__in=found).delete()[0]
        if len(found) < at_once:
            break
    return deleted
