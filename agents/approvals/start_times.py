"""Correct the start times of approved calls that were set while the database's clock was ahead."""

from datetime import datetime, timedelta

from django.db.models.functions import Now

from agents.platform.bounded_waits import CLOCK_SLACK, MAX_ROWS
from agents.runs.engine.timing import MAX_GRACE_S, timing
from agents.runs.engine.transaction import run_transaction
from agents.runs.models import Approval, ApprovalStatus, Origin, Run

GRACE = timedelta(seconds=MAX_GRACE_S)


def correct_starts() -> int:
    """Shorten grace periods that are longer than allowed, so that the approved calls can start.
    Return the number of corrected calls."""
    approved = Approval.objects.filter(status=ApprovalStatus.APPROVED)
    late = approved.filter(start_after__gt=Now() + GRACE + CLOCK_SLACK).order_by("pk")
    return sum(
        _correct_start(card_id, run_id)
        for card_id, run_id in late.values_list("pk", "run_id")[:MAX_ROWS]
    )


def _correct_start(card_id: int, run_id: int) -> bool:
    """Shorten the grace period of a card to the maximum; return True if it was too long.

    An ask keeps its `valid_until`, because its receipt may contain it.
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
        return False  # another transaction has locked the run; the next round corrects the time
