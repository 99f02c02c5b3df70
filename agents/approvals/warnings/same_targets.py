"""Find other open cards that affect the same targets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from agents.approvals.warnings.card_reading import get_family, read_card, read_cards
from agents.runs.models import Approval, ApprovalKind, ApprovalStatus

MAX_OPEN = 1_000
MAX_NAMED = 5
OPEN = (ApprovalStatus.PENDING, ApprovalStatus.APPROVED)


@dataclass(frozen=True)
class SameTargetCard:
    """Another open card that affects a target of this card."""

    pk: int
    is_approved: bool

    @property
    def text(self) -> str:
        """The card in words: `card 7 (approved)`."""
        return f"card {self.pk}{' (approved)' if self.is_approved else ''}"


def find_same_target_cards(cards: Collection[Approval]) -> dict[int, list[SameTargetCard]]:
    """Find, by card id, at most 5 other open cards that affect a target of the card. This takes one
    or two queries."""
    wanted = {card.pk: read_card(card).target_keys for card in cards}
    if not any(wanted.values()):
        return {}
    organization_id = next(iter(cards)).organization_id
    families = {get_family(card) for card in cards}
    rows = Approval.objects.filter(
        organization_id=organization_id, kind=ApprovalKind.APPROVAL, status__in=OPEN
    )
    columns = rows.order_by("-pk").values_list("pk", "digest", "status", "tool_call__tool")[
        :MAX_OPEN
    ]
    open_cards = {
        pk: (digest, status)
        for pk, digest, status, tool in columns
        if tool.partition(".")[0] in families
    }
    readings = read_cards(organization_id, {pk: digest for pk, (digest, _) in open_cards.items()})
    holders: dict[str, list[SameTargetCard]] = defaultdict(list)
    for pk, reading in sorted(readings.items()):
        other = SameTargetCard(pk, open_cards[pk][1] == ApprovalStatus.APPROVED)
        for key in reading.target_keys:
            holders[key].append(other)
    return {
        pk: sorted(
            {other for key in keys for other in holders[key] if other.pk != pk},
            key=lambda other: other.pk,
        )[:MAX_NAMED]
        for pk, keys in wanted.items()
    }
