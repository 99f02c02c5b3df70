"""The outbox: notices that are written together with their facts, and sent later by workers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from django.db import IntegrityError, transaction

from agents.accounts.notice_facts import NoticeFact, NoticeKind
from agents.notices.models import Notice
from agents.platform import notify
from agents.platform.queries.writes import insert_rows
from agents.runs.models import Approval, Run
from agents.runs.notice_facts import build_card_fact, build_run_fact

MAX_DETAIL = 200


def build_notice(fact: NoticeFact) -> Notice:
    """Build the notice of a fact."""
    return Notice(
        organization_id=fact.organization_id,
        key=f"{fact.kind}:{fact.key}",
        kind=fact.kind,
        run_id=fact.run_id,
        approval_id=fact.approval_id,
        user_id=fact.user_id,
        detail=fact.detail[:MAX_DETAIL],
    )


def write_facts(facts: Sequence[NoticeFact]) -> None:
    """Write the notices of these facts inside the caller's transaction, and ask the workers to send them."""
    insert_rows([build_notice(fact) for fact in facts if not fact.is_repeatable])
    repeatable = [build_notice(fact) for fact in facts if fact.is_repeatable]
    if repeatable:
        Notice.objects.bulk_create(repeatable, ignore_conflicts=True)
    send_soon()


def build_card_notice(kind: NoticeKind, card: Approval) -> Notice:
    """Build the notice of a card; there is one of each kind for each card."""
    return build_notice(build_card_fact(kind, card))


def build_run_notice(kind: NoticeKind, run: Run) -> Notice:
    """Build the notice of a run that ended."""
    return build_notice(build_run_fact(kind, run))


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
