"""The outbox: notices that are written together with their facts, and sent later by workers."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from django.db import IntegrityError, transaction

from agents.approvals.models import Approval
from agents.notices.models import Notice, NoticeKind
from agents.platform import notify
from agents.runs.models import Run


def build_card_notice(kind: NoticeKind, card: Approval) -> Notice:
    """Build the notice of a card; there is one of each kind for each card."""
    return Notice(
        organization_id=card.organization_id,
        key=f"{kind}:{card.pk}",
        kind=kind,
        run_id=card.run_id,
        approval_id=card.pk,
    )


def build_run_notice(kind: NoticeKind, run: Run) -> Notice:
    """Build the notice of a run that ended; a run that was continued may end again."""
    key = f"{kind}:{run.pk}:{run.next_event_seq}"
    return Notice(organization_id=run.organization_id, key=key, kind=kind, run_id=run.pk)


def build_budget_notice(run: Run, now: datetime) -> Notice:
    """Build the notice that the employee's runs end for lack of a budget; there is one in each month."""
    return Notice(
        organization_id=run.organization_id,
        key=f"{NoticeKind.BUDGET}:{run.employee_id}:{now:%Y-%m}",
        kind=NoticeKind.BUDGET,
        detail=f"runs of {run.employee.name}"[:200],
    )


def add_notice(notice: Notice) -> bool:
    """Write the notice unless it is there, in a transaction of its own; return True if it was new."""
    try:
        with transaction.atomic():
            notice.save(force_insert=True)
    except IntegrityError:
        return False
    send_soon()
    return True


def add_fact(notice: Notice) -> None:
    """Write the notice unless it is there, inside the caller's transaction."""
    Notice.objects.bulk_create([notice], ignore_conflicts=True)
    send_soon()


def send_soon() -> None:
    """Ask the workers to send what is due, after the commit; they look every few seconds without being asked."""
    transaction.on_commit(partial(notify.request_delivery))
