"""The outbox: notices that are written together with their facts, and sent later by workers."""

from __future__ import annotations

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


def add_notice(notice: Notice) -> bool:
    """Write the notice unless it is there, in a transaction of its own; return True if it was new."""
    try:
        with transaction.atomic():
            notice.save(force_insert=True)
    except IntegrityError:
        return False
    send_soon()
    return True


def send_soon() -> None:
    """Ask the workers to send what is due, after the commit; they look every few seconds without being asked."""
    transaction.on_commit(partial(notify.request_delivery))
