"""Other open cards that affect the same targets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from agents.approvals.marks import is_read, read_card
from agents.approvals.models import Approval, ApprovalKind, ApprovalStatus

MAX_OPEN = 1_000
MAX_NAMED = 5
OPEN = (ApprovalStatus.PENDING, ApprovalStatus.APPROVED)


@dataclass(frozen=True)
class SameTargetCard:
    """Another open card that affects a target of this card."""

    pk: int
    is_approved: bool


def find_same_target_cards(cards: Collection[Approval]) -> dict[int, list[SameTargetCard]]:
    """Find the other open cards on the targets of each card, at most 5, with one or two queries."""
    wanted = {card.pk: read_card(card).target_keys for card in cards}
    if not any(wanted.values()):
        return {}
    organization_id = next(iter(cards)).organization_id
    holders: dict[str, list[SameTargetCard]] = defaultdict(list)
    for other in _load_open(organization_id, cards):
        named = SameTargetCard(other.pk, other.status == ApprovalStatus.APPROVED)
        for key in read_card(other).target_keys:
            holders[key].append(named)
    found = {}
    for card in cards:
        others = {other: None for key in wanted[card.pk] for other in holders[key] if other.pk != card.pk}
        found[card.pk] = sorted(others, key=lambda other: other.pk)[:MAX_NAMED]
    return found


def _load_open(organization_id: int, cards: Collection[Approval]) -> list[Approval]:
    """Load the organization's open cards; the content only of those that no process memory holds."""
    rows = Approval.objects.filter(organization_id=organization_id, kind=ApprovalKind.APPROVAL, status__in=OPEN)
    families = {card.tool_call.tool.partition(".")[0] for card in cards}
    rows = rows.select_related("tool_call").defer("tool_call__result", "tool_call__content", "tool_call__params")
    brief = rows.order_by("-pk").defer("params", "preview", "sentence", "why")
    same = [row for row in brief[:MAX_OPEN] if row.tool_call.tool.partition(".")[0] in families]
    unread = [row.pk for row in same if not is_read(organization_id, row.digest)]
    if unread:
        by_id = rows.in_bulk(unread)
        same = [by_id.get(row.pk, row) for row in same]
    return same
