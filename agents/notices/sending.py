"""Send what is due, at least once: each try is recorded before it begins, and its end afterwards.

If a sender dies in between, another one tries again when the try's time is over, so a kill repeats at most the messages
that were being sent. All that is due for one channel goes out in one message.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from agents.accounts.notice_facts import NoticeKind
from agents.notices.audience import Audience
from agents.notices.channels import forget_channel
from agents.notices.failures import DeliveryError
from agents.notices.models import Channel, Delivery, DeliveryStatus
from agents.notices.senders import Sender, get_sender
from agents.notices.texts import MAX_IN_ONE_MESSAGE, write_message
from agents.platform.error_boundary import log_and_continue
from agents.platform.log_context import log_for_organization
from agents.runs.engine.timing import timing

logger = logging.getLogger(__name__)

MAX_TRIES = 8
MAX_GONE_ANSWERS = 3
TRY_S = 30.0
"""Seconds after which a try counts as lost, unless its sender renews it."""
RENEWED_EVERY_S = 10.0
MAX_AT_ONE_HOST = 2
"""Messages that one process sends to one host at the same time, so that a host that hangs leaves senders for others."""
_RELATED = ("channel__membership__organization", "notice__organization", "notice__run__employee")
_RELATED_TO_CARD = ("notice__approval__tool_call", "notice__approval__run__employee")


@dataclass(frozen=True)
class DeliveryBatch:
    """The deliveries of one channel that one message is about."""

    channel: Channel
    deliveries: tuple[Delivery, ...]

    @property
    def key(self) -> str:
        """The same for each try of the same deliveries."""
        ids = ",".join(str(each.pk) for each in self.deliveries)
        return f"{sha256(ids.encode()).hexdigest()[:32]}.gadget"


class _Receivers:
    """The receivers to which this process sends now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channels: set[int] = set()
        self._hosts: Counter[str] = Counter()

    def list_busy(self) -> tuple[list[int], list[str]]:
        """List the channels and hosts to which nothing more is sent until a message to them has ended."""
        with self._lock:
            return sorted(self._channels), [host for host, number in self._hosts.items() if number >= MAX_AT_ONE_HOST]

    def enter(self, channel: Channel) -> bool:
        """Count a message to the channel; return False if it or its host is busy."""
        with self._lock:
            if channel.pk in self._channels or self._hosts[channel.host] >= MAX_AT_ONE_HOST:
                return False
            self._channels.add(channel.pk)
            self._hosts.update(_list_hosts(channel))
            return True

    def leave(self, channel: Channel) -> None:
        """End the counting of a message to the channel."""
        with self._lock:
            self._channels.discard(channel.pk)
            self._hosts.subtract(_list_hosts(channel))


def _list_hosts(channel: Channel) -> list[str]:
    return [channel.host] if channel.host else []


_RECEIVERS = _Receivers()


def send_next(kind: str, *, only_healthy: bool = False) -> bool:
    """Send the next message by a channel of this kind; return False if nothing is due.

    Args:
        only_healthy: only by channels whose last message arrived, so that failing ones never delay them.
    """
    batch = _take_batch(kind, _RECEIVERS, only_healthy=only_healthy)
    if batch is None:
        return False
    try:
        return _send_batch(kind, batch)
    finally:
        _RECEIVERS.leave(batch.channel)


def _send_batch(kind: str, batch: DeliveryBatch) -> bool:
    log_for_organization(batch.deliveries[0].notice.organization_id)
    if batch.deliveries[0].tries >= MAX_TRIES:
        _end(batch, DeliveryStatus.FAILED, "each try ended without a result; the log of the workers says why")
        return True
    needed = _drop_unneeded(batch)
    if needed is None:
        return True
    try:
        sender = get_sender(kind)
        is_code = needed.deliveries[0].notice.kind == NoticeKind.CODE
        if not sender.is_available() and not (is_code and not settings.GADGET_SHOWS_MESSAGES):
            _end(needed, DeliveryStatus.SHOWN)
            return True
        with _renewing(needed):
            _send(needed, sender)
    except DeliveryError as error:
        _record_failure(needed, error)
    except Exception:
        logger.exception("message %s", needed.key)
        _record_failure(needed, DeliveryError("it could not be sent; the log of the workers says why"))
    else:
        _end(needed, DeliveryStatus.SENT)
        sender.note_sent(needed.channel, needed.deliveries)
        failing = Channel.objects.filter(pk=needed.channel.pk, failing_since__isnull=False)
        failing.update(failing_since=None, problem="", gone_answers=0)
    return True


def _send(batch: DeliveryBatch, sender: Sender) -> None:
    if not sender.is_available():
        raise DeliveryError("there is no mail server")
    if not batch.channel.address:
        raise DeliveryError("the address cannot be read, because its encryption key is missing", is_final=True)
    message = write_message([each.notice for each in batch.deliveries], batch.channel, batch.key)
    sender.send(batch.channel.address, sender.complete(batch.channel, message))


@contextmanager
def _renewing(batch: DeliveryBatch) -> Iterator[None]:
    """Keep other senders from the batch during a slow try; they may take a killed sender's batch after `TRY_S`."""
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(RENEWED_EVERY_S * timing().scale):
            with log_and_continue("renewing a message that is being sent"):
                _select(batch).update(due_at=Now() + timedelta(seconds=TRY_S * timing().scale))
            connection.close()

    thread = threading.Thread(target=renew, name="renew-message", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _take_batch(kind: str, receivers: _Receivers | None = None, *, only_healthy: bool = False) -> DeliveryBatch | None:
    """Take what is due for one channel that is not busy, and record that a try begins.

    With nothing due, no lock is taken.
    """
    receivers = receivers or _Receivers()
    due = Delivery.objects.filter(status=DeliveryStatus.WAITING, due_at__lte=Now(), channel__kind=kind)
    channels, hosts = receivers.list_busy()
    if channels:
        due = due.exclude(channel_id__in=channels)
    if hosts:
        due = due.exclude(channel__host__in=hosts)
    if only_healthy:
        due = due.filter(channel__failing_since=None)
    if not due.exists():
        return None
    with transaction.atomic():
        due = due.select_for_update(skip_locked=True, no_key=True, of=("self",))
        due = due.select_related(*_RELATED, *_RELATED_TO_CARD)
        healthy_first = F("channel__failing_since").asc(nulls_first=True)
        first = due.order_by(healthy_first, "due_at", "pk").first()
        if first is None:
            return None
        same = due.filter(channel=first.channel, tries=first.tries).order_by("pk")
        is_code = first.notice.kind == NoticeKind.CODE
        taken = (first,) if is_code else tuple(same.exclude(notice__kind=NoticeKind.CODE)[:MAX_IN_ONE_MESSAGE])
        ids = [each.pk for each in taken]
        Delivery.objects.filter(pk__in=ids).update(
            tries=F("tries") + 1, due_at=Now() + timedelta(seconds=TRY_S * timing().scale)
        )
        if not receivers.enter(first.channel):  # another thread has just begun there; this one looks again
            transaction.set_rollback(True)
            return None
    return DeliveryBatch(first.channel, taken)


def _drop_unneeded(batch: DeliveryBatch) -> DeliveryBatch | None:
    """End deliveries that nobody needs any more; return the others, or None without any."""
    audience = Audience.load(batch.channel.membership.organization, [each.notice for each in batch.deliveries])
    needed = []
    for delivery in batch.deliveries:
        reason = audience.explain_drop(delivery.notice, batch.channel)
        if reason:
            _end(DeliveryBatch(batch.channel, (delivery,)), DeliveryStatus.DROPPED, reason)
        else:
            needed.append(delivery)
    return DeliveryBatch(batch.channel, tuple(needed)) if needed else None


def _record_failure(batch: DeliveryBatch, error: DeliveryError) -> None:
    """Let the deliveries wait for their next try; after the last one they have failed."""
    tries = batch.deliveries[0].tries + 1
    is_last = error.is_final or tries >= MAX_TRIES
    logger.warning("channel %s: %s (try %d)", batch.channel.pk, error.problem, tries)
    gone_answers = F("gone_answers") + 1 if error.is_gone else 0
    channel = Channel.objects.filter(pk=batch.channel.pk)
    channel.update(
        failing_since=Coalesce("failing_since", Now()), problem=error.problem[:300], gone_answers=gone_answers
    )
    if channel.filter(gone_answers__gte=MAX_GONE_ANSWERS).exists():
        forget_channel(batch.channel)
        return
    if is_last:
        _end(batch, DeliveryStatus.FAILED, error.problem)
    else:
        next_try = timezone.now() + max(find_pause(tries), timedelta(seconds=error.retry_after_s * timing().scale))
        _select(batch).update(due_at=next_try, problem=error.problem[:300])
        others = Delivery.objects.filter(channel=batch.channel, status=DeliveryStatus.WAITING, due_at__lt=next_try)
        others.update(due_at=next_try)


def find_pause(tries: int) -> timedelta:
    """Return the pause after so many failed tries: 15 seconds, 1, 4, 16 minutes, then an hour."""
    return timedelta(seconds=min(15 * 4.0 ** (tries - 1), 3600) * timing().scale)


def _end(batch: DeliveryBatch, status: DeliveryStatus, problem: str = "") -> None:
    """End the deliveries. What was sent counts, even if another sender has begun a later try."""
    rows = _select(batch)
    if status == DeliveryStatus.SENT:
        ids = [each.pk for each in batch.deliveries]
        rows = Delivery.objects.filter(pk__in=ids, status=DeliveryStatus.WAITING)
    rows.update(status=status, ended_at=Now(), problem=problem[:300])


def _select(batch: DeliveryBatch) -> QuerySet[Delivery]:
    """Select the batch's rows unless another sender has begun a later try."""
    ids, tries = [each.pk for each in batch.deliveries], batch.deliveries[0].tries + 1
    return Delivery.objects.filter(pk__in=ids, tries=tries, status=DeliveryStatus.WAITING)
