"""Send due deliveries at least once. The start of each attempt is recorded before it begins, and
its end afterwards.

If a sender is killed in between, another sender retries when the attempt times out. So at most the
batch that was being sent is sent twice.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.functions import Now

from agents.deliveries.changes import end_deliveries
from agents.deliveries.failures import DeliveryError
from agents.deliveries.models import MAX_PROBLEM, DeliveryBase, DeliveryStatus
from agents.deliveries.outboxes import LONGEST_PAUSE_S, OUTBOXES, DeliveryBatch, Outbox
from agents.deliveries.receivers import Receivers
from agents.platform.error_boundary import log_and_continue
from agents.platform.log_context import log_for_organization
from agents.runs.engine.timing import timing

logger = logging.getLogger(__name__)

FIRST_PAUSE_S, RENEWED_EVERY_S = 15.0, 10.0
_RECEIVERS = Receivers()
_Batch = DeliveryBatch[Any, Any]
_Outbox = Outbox[Any, Any]


def send_next(kind: str, *, only_healthy: bool = False) -> bool:
    """Send the next batch by a channel of this kind; return False if nothing is due.

    Args:
        only_healthy: send only to receivers whose last batch arrived, so that failing receivers
            never delay them.
    """
    batch = _take_batch(kind, _RECEIVERS, only_healthy=only_healthy)
    if batch is None:
        return False
    try:
        log_for_organization(batch.receiver.organization_id)
        _send_batch(batch)
    finally:
        _RECEIVERS.leave(batch)
        batch.outbox.release(batch)
    return True


def _take_batch(
    kind: str, receivers: Receivers | None = None, *, only_healthy: bool = False
) -> _Batch | None:
    """Take the due deliveries of one idle receiver, and record the start of an attempt; return None
    if there are none.

    If no delivery is due, this does not lock any row.
    """
    receivers, outbox = receivers or Receivers(), OUTBOXES[kind]
    due = receivers.exclude_busy(outbox, outbox.select_due(only_healthy=only_healthy))
    while due.exists():
        with transaction.atomic():
            batch = _begin_try(outbox, due)
            if batch is None or receivers.enter(batch):
                return batch
            transaction.set_rollback(True)  # its host is busy, or its receiver was just taken
        due = due.exclude(**{outbox.receiver: batch.receiver})
    return None


def _begin_try(outbox: _Outbox, due: QuerySet[Any]) -> _Batch | None:
    """Lock the first due delivery, preferring healthy receivers, and record the start of an
    attempt; return None if no delivery can be locked."""
    rows = due.select_for_update(skip_locked=True, no_key=True, of=outbox.locks)
    rows = rows.select_related(outbox.receiver, *outbox.related).annotate(taken_at=Now())
    first = _find_first(outbox, rows)
    if first is None:
        return None
    receiver = getattr(first, outbox.receiver)
    same = rows.filter(**{outbox.receiver: receiver}, tries=first.tries).order_by("pk")
    until = first.taken_at + timedelta(seconds=outbox.try_s * timing().scale)
    batch = DeliveryBatch(outbox, receiver, outbox.choose(first, same), until)
    record_attempt(outbox.select_all(), batch.deliveries, until)
    outbox.hold(receiver, until)
    return batch


def record_attempt(
    rows: QuerySet[Any], deliveries: Collection[DeliveryBase], until: datetime | Combinable
) -> None:
    """Record the start of an attempt on these deliveries. The queryset `rows` must contain them;
    from `until` on, another sender may retry."""
    started = rows.filter(pk__in=[each.pk for each in deliveries])
    started.update(tries=F("tries") + 1, due_at=until)
    for each in deliveries:
        each.tries += 1


def _find_first(outbox: _Outbox, rows: QuerySet[Any]) -> Any:
    healthy_first = F(f"{outbox.receiver}__failing_since").asc(nulls_first=True)
    return rows.order_by(healthy_first, "due_at", "pk").first()


def _send_batch(batch: _Batch) -> None:
    outbox = batch.outbox
    if outbox.max_tries is not None and batch.tries > outbox.max_tries:
        _end(
            batch,
            DeliveryStatus.FAILED,
            "each try ended without a result; the log of the workers says why",
        )
        return
    try:
        batch = _drop_unneeded(batch)
        if not batch.deliveries:
            return
        with _renewing(batch):
            ending = outbox.send(batch)
    except DeliveryError as error:
        _record_failure(batch, error)
    except Exception:
        logger.exception("sending batch %s", batch.key)
        problem = "it could not be sent; the log of the workers says why"
        _record_failure(batch, DeliveryError(problem, is_ours=True))
    else:
        _end(batch, ending.status, ending.problem)
        if ending.status == DeliveryStatus.SENT:
            outbox.note_sent(batch)


def _drop_unneeded(batch: _Batch) -> _Batch:
    """End the deliveries that are no longer needed; return the batch with the remaining ones."""
    reasons = batch.outbox.explain_drops(batch)
    for pk, reason in reasons.items():
        _end(batch.keep([pk]), DeliveryStatus.DROPPED, reason)
    return batch.keep(set(batch.ids) - reasons.keys())


@contextmanager
def _renewing(batch: _Batch) -> Iterator[None]:
    """Keep other senders away from the batch during a slow attempt. If its sender is killed, other
    senders may take the batch after `try_s`."""
    ended = threading.Event()
    pause = timedelta(seconds=batch.outbox.try_s * timing().scale)

    def renew() -> None:
        while not ended.wait(RENEWED_EVERY_S * timing().scale):
            with log_and_continue("renewing a batch that is being sent"):
                batch.select().update(due_at=Now() + pause)
            connection.close()

    thread = threading.Thread(target=renew, name="renew-batch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _record_failure(batch: _Batch, error: DeliveryError) -> None:
    """Let the deliveries wait for their next attempt; after the last attempt, end them as
    failed."""
    outbox, pause = batch.outbox, None
    logger.warning(
        "%s %s: %s (try %d)", outbox.receiver, batch.receiver.pk, error.problem, batch.tries
    )
    if error.is_final or outbox.is_given_up(batch):
        _end(batch, DeliveryStatus.FAILED, error.problem)
    else:
        pause = find_pause(batch.tries, outbox.longest_pause_s, error.retry_after_s)
        batch.select().update(due_at=Now() + pause, problem=error.problem[:MAX_PROBLEM])
    outbox.note_failure(batch, error, pause)


def find_pause(tries: int, longest_s: float = LONGEST_PAUSE_S, asked_s: float = 0.0) -> timedelta:
    """Return the pause after this many failed attempts: 15 seconds, then four times the previous
    pause, up to `longest_s`. If the receiver asked for a longer pause, return that."""
    own_s = min(FIRST_PAUSE_S * 4.0 ** min(tries - 1, 10), longest_s)
    return timedelta(seconds=max(own_s, asked_s) * timing().scale)


def _end(batch: _Batch, status: str, problem: str = "") -> None:
    """End the deliveries. A success is recorded even if another sender has already begun a later
    attempt."""
    rows = batch.select_waiting() if status == DeliveryStatus.SENT else batch.select()
    end_deliveries(rows, status, problem)
