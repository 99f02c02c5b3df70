"""List a member's approvals that can still be undone; a bulk decision is listed as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db.models.functions import Now

from agents.accounts.models import Membership
from agents.approvals.warnings.card_marks import load_marks_of
from agents.approvals.warnings.marks import Mark
from agents.runs.models import Approval, ApprovalStatus, CallStatus, WithheldBulk

MAX_UNDOABLE = 1_000


@dataclass(frozen=True)
class Undoable:
    """A single approval that can be undone, or all approvals of one bulk decision.

    Attributes:
        approval_id, sentence: the id and sentence of the first approval's card.
        marks: the marks of a single approval's card.
        bulk_id: None for a single approval.
        until: the time at which the first of these calls may start.
    """

    approval_id: int
    sentence: str
    until: datetime
    bulk_id: UUID | None = None
    count: int = 1
    marks: tuple[Mark, ...] = ()


def list_undoable(member: Membership) -> list[Undoable]:
    """List this member's approvals that can still be undone, oldest first. Check at most 1,000
    approvals."""
    mine = Approval.objects.filter(
        organization_id=member.organization_id, decided_by_id=member.user_id
    )
    waiting = mine.filter(
        status=ApprovalStatus.APPROVED, start_after__gt=Now(), tool_call__status=CallStatus.APPROVED
    )
    columns = ("pk", "sentence", "start_after", "bulk_id")
    rows = (
        waiting.filter(~WithheldBulk.find_for_approval())
        .order_by("decided_at", "pk")
        .values_list(*columns)
    )
    found = list(_join_bulks(list(rows[:MAX_UNDOABLE])))
    singles = [one.approval_id for one in found if one.bulk_id is None]
    marks = load_marks_of(mine.filter(pk__in=singles)) if singles else {}
    return [replace(one, marks=marks.get(one.approval_id, ())) for one in found]


def _join_bulks(rows: list[tuple[int, str, datetime, UUID | None]]) -> Iterator[Undoable]:
    seen = set()
    for pk, sentence, until, bulk_id in rows:
        if bulk_id is None:
            yield Undoable(pk, sentence, until)
        elif bulk_id not in seen:
            seen.add(bulk_id)
            ends = [end for _, _, end, other in rows if other == bulk_id]
            yield Undoable(pk, sentence, min(ends), bulk_id, len(ends))
