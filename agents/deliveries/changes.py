"""Changes to deliveries other than sending: end them, send them again, or delete them."""

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
    """End the given deliveries that are still waiting, and return their number."""
    waiting = rows.filter(status=DeliveryStatus.WAITING)
    return waiting.update(status=status, ended_at=Now(), problem=problem[:MAX_PROBLEM])


def send_again(member: Membership, kind: str, delivery_id: int) -> Any:
    """Reset an ended delivery, which keeps its id, and ask the workers to send it again.

    Args:
        kind: the kind of the delivery's channel.

    Raises:
        Forbidden: the member may not see deliveries of this kind.
        NotFound: the member cannot see a delivery with this id.
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
    """Delete deliveries in at most 20 short transactions of `at_once` rows each; return the number
    deleted."""
    deleted = 0
    for _ in range(_STEPS):
        found = list(rows.order_by().values_list("pk", flat=True)[:at_once])
        deleted += rows.model._default_manager.filter(pk__in=found).delete()[0]
        if len(found) < at_once:
            break
    return deleted
