"""The outbox of webhooks, which sends signed deliveries, one at a time to each webhook.

So a slow receiver keeps at most one thread busy.
"""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now
from typing_extensions import override

from agents.accounts import audit
from agents.accounts.models import Membership
from agents.accounts.notice_facts import NoticeFact, NoticeKind, tell
from agents.deliveries.channels import get_channel
from agents.deliveries.content import SignedEvent
from agents.deliveries.engine import find_pause
from agents.deliveries.failures import DeliveryError
from agents.deliveries.models import MAX_PROBLEM
from agents.deliveries.outboxes import DeliveryBatch, DeliveryEnding, Outbox
from agents.gateway.models import Ask
from agents.gateway.redemptions import load_state
from agents.platform.bounded_waits import BoundedWait
from agents.platform.log_context import correlate, restoring_correlation
from agents.platform.refusals import Conflict
from agents.runs.engine.timing import MAX_GRACE_S, timing
from agents.runs.models import Run
from agents.webhooks.changes import fail_waiting, list_webhooks, lock_webhook, record_change
from agents.webhooks.models import (
    Webhook,
    WebhookDelivery,
    WebhookDeliveryStatus,
    WebhookKind,
    WebhookSecret,
)

KIND = "webhook"
TRY_S = 60.0
"""The number of seconds after which an attempt is considered lost; this is longer than the time
limit of a request."""
SLOW_MS = 2_000
LONGEST_PAUSE_S, LONGEST_REST_S = 4 * 3600.0, 900.0
LONGEST_WAIT = timedelta(days=3)
"""The time after which a delivery is given up."""
FAILING_TIME, MIN_FAILURES = LONGEST_WAIT, 10
"""The time without a success, and the number of failures during that time, after which a webhook is
switched off."""
_ABOUT_THE_RECEIVER = (408, 410, 429)
"""The HTTP statuses from 400 to 499 that are about the receiver, not about the delivery."""
_Batch = DeliveryBatch[WebhookDelivery, Webhook]


def _scale(seconds: float) -> timedelta:
    return timedelta(seconds=seconds * timing().scale)


WEBHOOK_WAITS = (
    BoundedWait(
        "webhook deliveries",
        lambda: WebhookDelivery.objects.filter(status=WebhookDeliveryStatus.WAITING),
        "due_at",
        lambda: max(_scale(LONGEST_PAUSE_S), timedelta(seconds=MAX_GRACE_S)),
        Now,
    ),
    BoundedWait(
        "failing webhooks",
        Webhook.objects.all,
        "rests_until",
        lambda: _scale(LONGEST_REST_S),
        lambda: None,
    ),
    BoundedWait(
        "sending webhooks",
        Webhook.objects.all,
        "busy_until",
        lambda: _scale(TRY_S),
        lambda: Now() + _scale(TRY_S),  # a worker may be sending now
    ),
)


class WebhookOutbox(Outbox[WebhookDelivery, Webhook]):
    """The outbox of deliveries to other systems."""

    kind = KIND
    model = WebhookDelivery
    receiver = "webhook"
    locks = ("self", "webhook")
    try_s = TRY_S
    max_tries = None
    longest_pause_s = LONGEST_PAUSE_S
    repeatable = (
        WebhookDeliveryStatus.SENT,
        WebhookDeliveryStatus.FAILED,
        WebhookDeliveryStatus.DROPPED,
    )
    noun, other_state = "delivery", "is already waiting"

    @override
    def select_due(self, *, only_healthy: bool) -> QuerySet[WebhookDelivery]:
        """Select the next delivery of each webhook that is free; with `only_healthy`, slow
        receivers are left out, too."""
        waiting = WebhookDelivery.objects.filter(
            status=WebhookDeliveryStatus.WAITING, webhook=OuterRef("pk")
        )
        next_one = Subquery(waiting.order_by("due_at", "pk").values("pk")[:1])
        free = Webhook.objects.filter(_match_free()).annotate(next_one=next_one)
        due = super().select_due(only_healthy=only_healthy).filter(_match_free("webhook__"))
        due = due.filter(pk__in=free.values("next_one"))
        return due.filter(webhook__is_slow=False) if only_healthy else due

    @override
    def select_visible(self, member: Membership) -> QuerySet[WebhookDelivery]:
        return WebhookDelivery.objects.filter(webhook__in=list_webhooks(member))

    @override
    def begin_again(self, member: Membership, delivery: WebhookDelivery) -> dict[str, Any]:
        webhook = lock_webhook(member, delivery.webhook_id)
        if not webhook.is_active:
            raise Conflict("the webhook is switched off")
        record_change(member, "webhook_delivery_repeated", webhook, delivery=str(delivery.pk))
        return {"problem": "", "answer_status": None, "duration_ms": None, "wanted_at": Now()}

    @override
    def hold(self, receiver: Webhook, until: datetime) -> None:
        Webhook.objects.filter(pk=receiver.pk).update(busy_until=until)

    @override
    def release(self, batch: _Batch) -> None:
        held = Webhook.objects.filter(pk=batch.receiver.pk, busy_until=batch.until)
        held.update(busy_until=None)

    @override
    def send(self, batch: _Batch) -> DeliveryEnding:
        (delivery,), started = batch.deliveries, time.monotonic()
        delivery.answer_status = None
        try:
            content = compose(delivery, batch.receiver)
            if content is None:
                return DeliveryEnding(
                    WebhookDeliveryStatus.DROPPED, "the decision was undone before this was sent"
                )
            event = SignedEvent(
                delivery.message_id, json.dumps(content), _list_secrets(batch.receiver)
            )
            with restoring_correlation():
                correlate(_find_correlation(delivery.run_id))
                delivery.answer_status = get_channel(KIND).send(batch.receiver.address, event)
        except DeliveryError as error:
            delivery.answer_status = error.answer_status
            raise
        finally:
            delivery.duration_ms = _measure(started)
        return DeliveryEnding()

    @override
    def is_given_up(self, batch: _Batch) -> bool:
        late = batch.select().filter(wanted_at__lte=Now() - LONGEST_WAIT * timing().scale)
        return late.exists()

    @override
    def note_sent(self, batch: _Batch) -> None:
        delivery = _record_response(batch)
        Webhook.objects.filter(pk=batch.receiver.pk).update(
            failing_since=None,
            failures=0,
            problem="",
            rests_until=None,
            is_slow=(delivery.duration_ms or 0) > SLOW_MS,
        )

    @override
    def note_failure(self, batch: _Batch, error: DeliveryError, pause: timedelta | None) -> None:
        _record_response(batch)
        if error.is_ours:
            return
        webhook = Webhook.objects.filter(pk=batch.receiver.pk)
        webhook.update(
            failing_since=Coalesce("failing_since", Now()),
            failures=F("failures") + 1,
            problem=error.problem[:MAX_PROBLEM],
            rests_until=_find_rest(batch.receiver, error),
        )
        long_ago = Now() - FAILING_TIME * timing().scale
        if error.is_gone:
            _switch_off(batch.receiver, "the receiver responded with 410: it is gone")
        elif webhook.filter(failing_since__lte=long_ago, failures__gte=MIN_FAILURES).exists():
            _switch_off(batch.receiver, f"every delivery failed for three days: {error.problem}")


def _match_free(prefix: str = "") -> Q:
    """Match webhooks that are switched on, do not rest, and have no delivery on its way."""
    free = Q((f"{prefix}is_active", True))
    for until in (f"{prefix}busy_until", f"{prefix}rests_until"):
        free &= Q((until, None)) | Q((f"{until}__lte", Now()))
    return free


def compose(delivery: WebhookDelivery, webhook: Webhook) -> dict[str, Any] | None:
    """Return the body for the receiver; None if the fact is no longer true, because its decision
    was undone."""
    numbers = {"seq": delivery.seq, "previous_seq": delivery.previous_seq}
    data = {**numbers, **delivery.payload, **(delivery.values if webhook.sends_values else {})}
    if delivery.kind == WebhookKind.ASK_ANSWERED:
        asks = Ask.objects.select_related("run__organization", "key", "effect")
        ask = asks.filter(run_id=delivery.run_id or 0).first()
        if ask is None or (state := load_state(ask)).is_waiting:
            return None
        data["status"] = state.status
        if webhook.sends_values and (receipt := state.sign()):
            data["receipt"] = receipt
    return {"type": delivery.kind, "timestamp": delivery.created_at.isoformat(), "data": data}


def _find_correlation(run_id: int | None) -> str:
    """Return the correlation id of the run; empty if there is no run, or if it was deleted."""
    if run_id is None:
        return ""
    run = Run.objects.only("correlation_id").filter(pk=run_id).first()
    return run.correlation if run is not None else ""


def _list_secrets(webhook: Webhook) -> list[str]:
    """List the secrets that are valid now and can be decrypted, the newest first."""
    valid = WebhookSecret.objects.filter(
        Q(valid_until=None) | Q(valid_until__gt=Now()), webhook=webhook
    )
    return [row.secret for row in valid.order_by("-pk") if row.secret]


def _record_response(batch: _Batch) -> WebhookDelivery:
    """Record the response to this attempt, even if the delivery has changed meanwhile."""
    (delivery,) = batch.deliveries
    facts = {"answer_status": delivery.answer_status, "duration_ms": delivery.duration_ms}
    WebhookDelivery.objects.filter(pk=delivery.pk).update(**facts)
    return delivery


def _find_rest(webhook: Webhook, error: DeliveryError) -> Any:
    """Return the time until which Gadget does not send to a failing receiver; None if the receiver
    refused only this delivery."""
    status = error.answer_status or 0
    if 400 <= status < 500 and status not in _ABOUT_THE_RECEIVER:
        return None
    asked_s = min(error.retry_after_s, LONGEST_REST_S)
    return Now() + find_pause(webhook.failures + 1, LONGEST_REST_S, asked_s)


def _switch_off(webhook: Webhook, reason: str) -> None:
    """Switch the webhook off, fail its deliveries, and notify the admins."""
    with transaction.atomic():
        active = Webhook.objects.filter(pk=webhook.pk, is_active=True)
        if not active.update(is_active=False, off_reason=reason[:300]):
            return
        fail_waiting(webhook, "the webhook was switched off")
        tell(
            NoticeFact(
                NoticeKind.WEBHOOK_OFF,
                webhook.organization_id,
                detail=webhook.name,
                reason=reason,
                ids={"webhook_id": str(webhook.pk)},
            )
        )
        entry = audit.NewEntry(
            "gadget", "webhook_switched_off", f"webhook:{webhook.pk}", {"reason": reason}
        )
        audit.append(webhook.organization_id, [entry])


def _measure(started: float) -> int:
    return int((time.monotonic() - started) * 1000)
