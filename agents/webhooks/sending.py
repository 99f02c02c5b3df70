"""Send deliveries, at least once: each try is recorded before it begins, and its end afterwards.

A webhook has one delivery on its way at a time, so a slow receiver keeps one thread busy at most. If a worker dies
while it sends, another one tries again when the try's time is over.
"""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce, Now
from django.utils import timezone
from standardwebhooks import Webhook as Signer

from agents.accounts import audit
from agents.accounts.notice_facts import NoticeKind
from agents.gateway.models import Ask
from agents.gateway.redemptions import load_state
from agents.notices.models import Notice
from agents.notices.outbox import add_fact
from agents.platform.database_connections import release_connection
from agents.platform.log_context import log_for_organization
from agents.runs.engine.timing import timing
from agents.webhooks.models import Webhook, WebhookDelivery, WebhookDeliveryStatus, WebhookKind, WebhookSecret
from tools.contract import ErrorCode, NetworkAccess, ToolError
from tools.network import NetworkLimits, get_host, read_url, request

logger = logging.getLogger(__name__)

LIMITS = NetworkLimits(total_s=15.0, response_bytes=1_000_000, redirects=0)
TRY_S = 60.0
"""Seconds after which a try counts as lost; longer than the time limit of a request."""
SLOW_MS = 2_000
FIRST_PAUSE_S, LONGEST_PAUSE_S, LONGEST_REST_S = 15.0, 4 * 3600.0, 900.0
LONGEST_WAIT = timedelta(days=3)
"""Time after which a delivery is given up."""
FAILING_TIME, MIN_FAILURES = LONGEST_WAIT, 10
"""A webhook that only failed for so long, and so often, is switched off."""
GONE = 410
_ABOUT_THE_RECEIVER = (408, GONE, 429)
"""Answers from 400 to 499 that say nothing about the delivery itself."""


@dataclass(frozen=True)
class _Try:
    """One try of one delivery."""

    delivery: WebhookDelivery
    webhook: Webhook
    busy_until: datetime | None

    def select(self) -> QuerySet[WebhookDelivery]:
        """Select the delivery unless somebody has begun a later try or ended it."""
        rows = WebhookDelivery.objects.filter(pk=self.delivery.pk, tries=self.delivery.tries)
        return rows.filter(status=WebhookDeliveryStatus.WAITING)


@dataclass(frozen=True)
class _Answer:
    """The receiver's answer to a try.

    Attributes:
        status: None without an answer.
        problem: the reason why it does not count as delivered; empty if it does.
        is_ours: the failure is this installation's, and says nothing about the receiver.
    """

    status: int | None
    duration_ms: int
    problem: str
    is_ours: bool = False


def send_next_delivery(*, only_quick: bool = False) -> bool:
    """Send the next delivery that is due; return False if there is none.

    Args:
        only_quick: only to receivers whose last answer was quick and good, so that others never delay them.
    """
    attempt = _take(only_quick=only_quick)
    if attempt is None:
        return False
    log_for_organization(attempt.webhook.organization_id)
    try:
        answer = _try(attempt)
        if answer is None:
            _end(attempt, WebhookDeliveryStatus.DROPPED, "the decision was undone before this was sent")
        else:
            _record(attempt, answer)
    finally:
        Webhook.objects.filter(pk=attempt.webhook.pk, busy_until=attempt.busy_until).update(busy_until=None)
    return True


def _take(*, only_quick: bool) -> _Try | None:
    """Take the next delivery, and record that a try begins. With nothing due, no lock is taken."""
    ready = Q(is_active=True) & (Q(busy_until=None) | Q(busy_until__lte=Now()))
    ready &= Q(rests_until=None) | Q(rests_until__lte=Now())
    if only_quick:
        ready &= Q(failing_since=None, is_slow=False)
    waiting = WebhookDelivery.objects.filter(status=WebhookDeliveryStatus.WAITING).order_by("due_at", "pk")
    next_due = Subquery(waiting.filter(webhook=OuterRef("pk")).values("due_at")[:1])
    webhooks = Webhook.objects.filter(ready).annotate(next_due=next_due).filter(next_due__lte=Now())
    tried: list[int] = []
    while (webhook_id := _find_first(webhooks.exclude(pk__in=tried))) is not None:
        tried.append(webhook_id)  # if another worker has just taken it, another webhook may be due
        with transaction.atomic():
            webhook = _lock_free(webhook_id, ready)
            delivery = waiting.filter(webhook_id=webhook_id, due_at__lte=Now()).first() if webhook else None
            if webhook is None or delivery is None:
                continue
            webhook.deliveries.filter(pk=delivery.pk).update(tries=F("tries") + 1)
            Webhook.objects.filter(pk=webhook_id).update(busy_until=Now() + timedelta(seconds=TRY_S * timing().scale))
            webhook.refresh_from_db(fields=["busy_until"])
        delivery.tries += 1
        return _Try(delivery, webhook, webhook.busy_until)
    return None


def _find_first(webhooks: QuerySet[Any]) -> int | None:
    """Return the id of the webhook whose next delivery has been due for longest."""
    return webhooks.order_by("next_due", "pk").values_list("pk", flat=True).first()


def _lock_free(webhook_id: int, ready: Q) -> Webhook | None:
    rows = Webhook.objects.select_for_update(skip_locked=True, no_key=True)
    return rows.filter(ready, pk=webhook_id).first()


def _compose(attempt: _Try) -> dict[str, Any] | None:
    """Return what the receiver reads; None if it is no longer true."""
    delivery = attempt.delivery
    numbers = {"seq": delivery.seq, "previous_seq": delivery.previous_seq}
    data = {**numbers, **delivery.payload, **(delivery.values if attempt.webhook.sends_values else {})}
    if delivery.kind == WebhookKind.ASK_ANSWERED:
        ask = Ask.objects.select_related("run__organization", "key", "effect").filter(run_id=delivery.run_id).first()
        if ask is None or (state := load_state(ask)).is_waiting:
            return None
        data["status"] = state.status
        if attempt.webhook.sends_values and (receipt := state.sign()):
            data["receipt"] = receipt
    return {"type": delivery.kind, "timestamp": delivery.created_at.isoformat(), "data": data}


def _try(attempt: _Try) -> _Answer | None:
    """Sign the content and send it, through the guarded client; return None if it is no longer true."""
    webhook, started = attempt.webhook, time.monotonic()
    try:
        content = _compose(attempt)
        if content is None:
            return None
        body = json.dumps(content)
        headers = sign(webhook, attempt.delivery.message_id, body)
        host = get_host(read_url(webhook.address))
        reach = NetworkAccess(requested=frozenset({host}), installation=settings.ALLOWED_PRIVATE_HOSTS)
        release_connection()
        answer = request(
            "POST", webhook.address, reach=reach, headers=headers, body=body.encode(), limits=LIMITS, repeatable=True
        )
    except ToolError as error:
        return _Answer(None, _measure(started), error.message)
    except Exception:
        logger.exception("webhook %s", webhook.pk)
        return _Answer(None, _measure(started), "it could not be sent; the log of the workers says why", is_ours=True)
    is_good = 200 <= answer.status < 300
    return _Answer(answer.status, _measure(started), "" if is_good else f"the receiver answered {answer.status}")


def sign(webhook: Webhook, message_id: str, body: str) -> dict[str, str]:
    """Return the headers of Standard Webhooks, with a signature for each secret that is valid now.

    Raises:
        ToolError: no secret can be read, because its encryption key is missing.
    """
    now = timezone.now()
    valid = WebhookSecret.objects.filter(Q(valid_until=None) | Q(valid_until__gt=Now()), webhook=webhook)
    secrets = [row.secret for row in valid.order_by("-pk") if row.secret]
    if not secrets:
        raise ToolError(ErrorCode.UNAUTHORIZED, "the webhook's secret cannot be read")
    return {
        "content-type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(Signer(secret).sign(message_id, now, body) for secret in secrets),
    }


def _record(attempt: _Try, answer: _Answer) -> None:
    """Record the answer to a try: the delivery was sent, waits for its next try, or is given up."""
    facts = {"answer_status": answer.status, "duration_ms": answer.duration_ms}
    WebhookDelivery.objects.filter(pk=attempt.delivery.pk).update(**facts)
    if not answer.problem:
        Webhook.objects.filter(pk=attempt.webhook.pk).update(
            failing_since=None, failures=0, problem="", rests_until=None, is_slow=answer.duration_ms > SLOW_MS
        )
        _end(attempt, WebhookDeliveryStatus.SENT)
        return
    _postpone(attempt, answer)
    if answer.is_ours:
        return
    _note_failure(attempt.webhook, answer)
    if answer.status == GONE:
        _switch_off(attempt.webhook, "the receiver answered 410: it is gone")
    elif Webhook.objects.filter(
        pk=attempt.webhook.pk, failing_since__lte=Now() - FAILING_TIME * timing().scale, failures__gte=MIN_FAILURES
    ).exists():
        _switch_off(attempt.webhook, f"every delivery failed for three days: {answer.problem}")


def _postpone(attempt: _Try, answer: _Answer) -> None:
    """Let the delivery wait for its next try; give it up after three days."""
    problem, tries = answer.problem[:300], attempt.delivery.tries
    logger.warning("webhook %s: %s (try %d)", attempt.webhook.pk, problem, tries)
    late = attempt.select().filter(wanted_at__lte=Now() - LONGEST_WAIT * timing().scale)
    if not late.update(status=WebhookDeliveryStatus.FAILED, ended_at=Now(), problem=problem):
        attempt.select().update(due_at=Now() + find_pause(tries, LONGEST_PAUSE_S), problem=problem)


def _note_failure(webhook: Webhook, answer: _Answer) -> None:
    """Note that the receiver failed; one that is away rests."""
    status = answer.status or 0
    is_refused = 400 <= status < 500 and status not in _ABOUT_THE_RECEIVER
    rest = None if is_refused else Now() + find_pause(webhook.failures + 1, LONGEST_REST_S)
    Webhook.objects.filter(pk=webhook.pk).update(
        failing_since=Coalesce("failing_since", Now()),
        failures=F("failures") + 1,
        problem=answer.problem[:300],
        rests_until=rest,
    )


def find_pause(tries: int, longest_s: float) -> timedelta:
    """Return the pause after so many failed tries: 15 seconds, then four times the last one, up to the longest."""
    return timedelta(seconds=min(FIRST_PAUSE_S * 4.0 ** min(tries - 1, 10), longest_s) * timing().scale)


def _end(attempt: _Try, status: WebhookDeliveryStatus, problem: str = "") -> None:
    """End the delivery. What was sent counts, even if another worker has begun a later try."""
    rows = attempt.select()
    if status == WebhookDeliveryStatus.SENT:
        rows = WebhookDelivery.objects.filter(pk=attempt.delivery.pk, status=WebhookDeliveryStatus.WAITING)
    rows.update(status=status, ended_at=Now(), problem=problem[:300])


def _switch_off(webhook: Webhook, reason: str) -> None:
    """Switch the webhook off, fail its deliveries, and tell the admins."""
    with transaction.atomic():
        if not Webhook.objects.filter(pk=webhook.pk, is_active=True).update(is_active=False, off_reason=reason[:300]):
            return
        fail_waiting(webhook, "the webhook was switched off")
        key = f"{NoticeKind.WEBHOOK_OFF}:{webhook.pk}:{timezone.now().isoformat()}"
        add_fact(
            Notice(organization_id=webhook.organization_id, key=key, kind=NoticeKind.WEBHOOK_OFF, detail=webhook.name)
        )
        entry = audit.NewEntry("gadget", "webhook_switched_off", f"webhook:{webhook.pk}", {"reason": reason})
        audit.append(webhook.organization_id, [entry])


def fail_waiting(webhook: Webhook, reason: str) -> None:
    """Fail every delivery of the webhook that waits, and keep the reason of its last try; people can send it again."""
    waiting = WebhookDelivery.objects.filter(webhook=webhook, status=WebhookDeliveryStatus.WAITING)
    problem = Case(When(problem="", then=Value(reason[:300])), default=F("problem"))
    waiting.update(status=WebhookDeliveryStatus.FAILED, ended_at=Now(), problem=problem)


def _measure(started: float) -> int:
    return int((time.monotonic() - started) * 1000)
