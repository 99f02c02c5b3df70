"""The cards of a member's organization: count them, find a card, and lock it for a decision."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from django.db.models import BooleanField, Exists, ExpressionWrapper, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from agents.accounts.models import DECIDERS, Membership, Role
from agents.approval_rules.loading import HAS_RULES
from agents.approvals.models import Claim
from agents.platform.refusals import Forbidden, NotFound
from agents.runs.engine.transaction import Transaction, run_transaction
from agents.runs.models import IS_PENDING, Approval


def count_pending_cards(organization_id: int) -> int:
    """Count the organization's cards that wait for people."""
    return Approval.objects.filter(IS_PENDING, organization_id=organization_id).count()


def require_approver(member: Membership) -> None:
    """Raise Forbidden if the member may not decide cards."""
    member.require(Role.APPROVER, "decide cards")


@contextmanager
def lock_own_card(member: Membership, approval_id: int) -> Iterator[tuple[Transaction, Approval]]:
    """Lock the card's run and read the card, so that nobody else decides it during the block.

    The member's role is read again too, because it may have changed while they waited for the lock.
    """
    require_approver(member)
    with run_transaction(find_own_card(member, approval_id).run_id) as tx:
        card = find_own_card(member, approval_id)
        if not card.is_approvers:  # type: ignore[attr-defined]
            raise Forbidden("you can no longer decide cards")
        yield tx, card


@contextmanager
def lock_own_cards(
    member: Membership, run_id: int, approval_ids: Collection[int]
) -> Iterator[tuple[Transaction, dict[int, Approval]]]:
    """Lock the run and read the cards with these ids, so that nobody else decides them during the
    block."""
    require_approver(member)
    with run_transaction(run_id) as tx:
        cards = {card.pk: card for card in _select_own_cards(member, approval_ids)}
        if not all(card.is_approvers for card in cards.values()):  # type: ignore[attr-defined]
            raise Forbidden("you cannot decide cards any more")
        yield tx, cards


def find_own_card(member: Membership, approval_id: int) -> Approval:
    """Find a card of the member's organization, with the annotations of `_select_own_cards`.

    Raises:
        NotFound
    """
    card = _select_own_cards(member, [approval_id]).first()
    if card is None:
        raise NotFound(f"there is no approval {approval_id}")
    return card


def _select_own_cards(member: Membership, approval_ids: Collection[int]) -> QuerySet[Approval]:
    """Select these cards, annotated with `has_rules`, `is_overdue`, and `is_approvers`, which is
    True if the member may decide them.

    `claimed_by` is the username of another person who has claimed the card; None if nobody has.
    """
    still = Membership.objects.filter(pk=member.pk, role__in=DECIDERS, user__is_active=True)
    own = Approval.objects.filter(organization_id=member.organization_id, pk__in=approval_ids)
    claims = Claim.select_active(member.organization_id).filter(
        tool_call_id=OuterRef("tool_call_id")
    )
    others = claims.exclude(user_id=member.user_id).values("user__username")
    is_overdue = ExpressionWrapper(Q(expires_at__lte=Now()), BooleanField())
    found = own.annotate(
        has_rules=HAS_RULES,
        is_approvers=Exists(still),
        claimed_by=others[:1],
        is_overdue=is_overdue,
    )
    return found.select_related("tool_call", "decided_by", "run__organization")
