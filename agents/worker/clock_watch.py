"""Correct waits that are longer than the code allows: the database's clock was ahead when they were
set.

Without this, work would wait for as long as the clock was ahead, unnoticed.
`runs/schedule_watch.py` does the same for schedules, `LeaseWatch` for leases.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from agents.approvals.attention import CLAIM_LASTS
from agents.approvals.models import Claim, Snooze
from agents.approvals.snoozes import LONGEST_SNOOZE
from agents.employees.sources import REFRESH_AFTER
from agents.insight.models import FiguresHead
from agents.notices.due_times import correct_due_times
from agents.platform.error_boundary import log_and_continue
from agents.runs.engine.timing import CLOCK_SLACK, MAX_GRACE_S, timing
from agents.runs.engine.transaction import run_transaction
from agents.runs.models import Approval, ApprovalStatus, Origin, Run, RunStatus
from agents.webhooks.models import Webhook, WebhookDelivery, WebhookDeliveryStatus
from agents.webhooks.sending import LONGEST_PAUSE_S, LONGEST_REST_S, TRY_S
from tools.connections.models import Source

logger = logging.getLogger(__name__)

MAX_ROWS = 200
GRACE = timedelta(seconds=MAX_GRACE_S)


@dataclass(frozen=True)
class BoundedWait:
    """A column with the time until which rows wait.

    Attributes:
        name: the rows, for the log.
        select: the rows that may wait.
        longest: the longest possible wait.
        anew: the replacement for a later time.
    """

    name: str
    select: Callable[[], QuerySet[Any]]
    column: str
    longest: Callable[[], timedelta]
    anew: Callable[[], Any]

    def correct(self) -> int:
        """Shorten the waits that are too long; return their number. Locked rows are corrected next
        time."""
        rows = self.select()
        late = rows.filter(**{f"{self.column}__gt": Now() + self.longest() + CLOCK_SLACK})
        with transaction.atomic():
            free = late.select_for_update(skip_locked=True, no_key=True, of=("self",)).order_by(
                "pk"
            )
            ids = list(free.values_list("pk", flat=True)[:MAX_ROWS])
            return (
                rows.model._default_manager.filter(pk__in=ids).update(**{self.column: self.anew()})
                if ids
                else 0
            )


def _scale(seconds: float) -> timedelta:
    return timedelta(seconds=seconds * timing().scale)


BOUNDED_WAITS = (
    BoundedWait(
        "queued runs",
        lambda: Run.objects.filter(status=RunStatus.QUEUED),
        "next_wake_at",
        lambda: timing().patience,
        lambda: None,
    ),
    BoundedWait(
        "resting sessions",
        lambda: Run.objects.filter(status=RunStatus.WAITING, origin=Origin.MCP),
        "next_wake_at",
        lambda: timing().session_idle,
        lambda: Now() + timing().session_idle,
    ),
    BoundedWait("sources", Source.objects.all, "due_at", lambda: REFRESH_AFTER, Now),
    BoundedWait(
        "claims", Claim.objects.all, "until", lambda: CLAIM_LASTS, lambda: Now() + CLAIM_LASTS
    ),
    BoundedWait("snoozes", Snooze.objects.all, "until", lambda: LONGEST_SNOOZE, Now),
    BoundedWait("figures", FiguresHead.objects.all, "due_at", lambda: timing().count_pause, Now),
    BoundedWait(
        "webhook deliveries",
        lambda: WebhookDelivery.objects.filter(status=WebhookDeliveryStatus.WAITING),
        "due_at",
        lambda: max(_scale(LONGEST_PAUSE_S), GRACE),
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


def correct_waits() -> int:
    """Correct every wait that is too long, and log how many of each kind; return their number."""
    found = {wait.name: wait.correct for wait in BOUNDED_WAITS}
    found |= {"messages": correct_due_times, "approved calls": _correct_starts}
    total = 0
    for name, correct in found.items():
        with log_and_continue(f"correcting waits of {name}"):
            if count := correct():
                logger.warning("the clock was ahead: corrected the wait of %d %s", count, name)
                total += count
    return total


def _correct_starts() -> int:
    """Let approved calls start whose grace period is too long."""
    approved = Approval.objects.filter(status=ApprovalStatus.APPROVED)
    late = approved.filter(start_after__gt=Now() + GRACE + CLOCK_SLACK).order_by("pk")
    return sum(
        _correct_start(card_id, run_id)
        for card_id, run_id in late.values_list("pk", "run_id")[:MAX_ROWS]
    )


def _correct_start(card_id: int, run_id: int) -> bool:
    """Shorten the grace period of a card to the maximum.

    An ask keeps the time until which it is valid, because its receipt may contain it.
    """
    try:
        with run_transaction(run_id, wait=False) as tx:
            start: datetime = tx.now + GRACE
            times = {"start_after": start}
            if tx.run.origin != Origin.ASK:
                times["valid_until"] = start + timing().approval_validity
            card = Approval.objects.filter(pk=card_id, status=ApprovalStatus.APPROVED)
            return bool(card.filter(start_after__gt=start + CLOCK_SLACK).update(**times))
    except Run.DoesNotExist:
        return False  # the run is locked; the next round corrects it
