"""Claims and looks. A claim says who has taken a card, and is stored for a while. A look says who
is viewing a card, and is never stored.

Neither a claim nor a look prevents a decision, but whoever decides a card that another person has
claimed is warned first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from agents.accounts.models import Membership
from agents.approvals.models import Claim
from agents.approvals.own_cards import lock_own_card
from agents.platform.refusals import Claimed, Conflict
from agents.platform.row_ids import LARGEST_ID
from agents.runs.models import Approval, ApprovalKind, ApprovalStatus
from tools.contract import RateLimit

CLAIM_MINUTES = 15
CLAIM_LASTS = timedelta(minutes=CLAIM_MINUTES)
LOOKS = RateLimit(1, 1.0)
"""The rate at which a page may report which card its viewer sees, so that a page cannot flood other
pages."""


def take(member: Membership, approval_id: int) -> Claim:
    """Claim a waiting card for CLAIM_MINUTES from now.

    Raises:
        Forbidden, NotFound
        Conflict: the card does not wait for approval.
        Claimed: another person has taken it.
    """
    with lock_own_card(member, approval_id) as (tx, card):
        if (card.kind, card.status) != (ApprovalKind.APPROVAL, ApprovalStatus.PENDING):
            raise Conflict("the card is not waiting for approval", approval_status=card.status)
        if card.expires_at <= tx.now:
            raise Conflict("the card has expired", approval_status=ApprovalStatus.EXPIRED)
        refuse_claimed(card)
        values = {"user": member.user, "until": tx.now + CLAIM_LASTS}
        tx.inbox_changed = True
        return Claim.objects.update_or_create(tool_call_id=card.tool_call_id, defaults=values)[0]


def release(member: Membership, approval_id: int) -> None:
    """End the member's own claim on a card, if they have one.

    Raises:
        Forbidden, NotFound
    """
    with lock_own_card(member, approval_id) as (tx, card):
        Claim.objects.filter(tool_call_id=card.tool_call_id, user=member.user).delete()
        tx.inbox_changed = True


def find_claims(organization_id: int) -> dict[int, Claim]:
    """Find the organization's current claims, by call id."""
    active = Claim.select_active(organization_id).filter(tool_call__organization_id=organization_id)
    return {each.tool_call_id: each for each in active.select_related("user").order_by("pk")}


def refuse_claimed(card: Approval, known: str = "") -> None:
    """Raise Claimed if another person has taken the card.

    Args:
        card: a card from `find_own_card`, which loads the claimant's name with it.
        known: the username of the claimant that the member was warned about before deciding anyway.
    """
    name: str | None = card.claimed_by  # type: ignore[attr-defined]
    if name is not None and name != known:
        raise Claimed(f"{name} has taken this card", claimed_by=name, approval_status=card.status)


@dataclass(frozen=True)
class Look:
    """The fact that a person is viewing a card: a hint that one process sends to all others, and
    that only open inboxes show."""

    username: str
    card_id: str

    @classmethod
    def read(cls, username: str, content: Any) -> Look | None:
        """Parse a page's message, `{"looking_at": ID}`; return None for any other message."""
        card_id = content.get("looking_at") if isinstance(content, dict) else None
        return (
            cls(username, str(card_id))
            if type(card_id) is int and 0 < card_id <= LARGEST_ID
            else None
        )

    @classmethod
    def from_hint(cls, hint: Mapping[str, Any]) -> Look | None:
        return cls(hint["user"], hint["card"]) if hint["type"] == "presence" else None

    @property
    def hint(self) -> dict[str, str]:
        return {"type": "presence", "user": self.username, "card": self.card_id}

    def to_json(self) -> dict[str, Any]:
        """Build the message for pages."""
        return {"type": "presence", "payload": {"user": self.username, "card": self.card_id}}
