"""Undo bulk approvals: one row withholds all calls together, and workers then renew the cards one
by one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Now

from agents.accounts import audit
from agents.accounts.models import Membership
from agents.approvals.current_calls import judge_current
from agents.approvals.decisions import renew_undone, withdraw
from agents.approvals.own_cards import require_approver
from agents.platform import notify
from agents.platform.error_boundary import log_and_continue
from agents.platform.refusals import Conflict, NotFound
from agents.runs.engine.transaction import run_transaction
from agents.runs.models import Approval, ApprovalStatus, CallStatus, Vote, WithheldBulk

UNDOABLE_FOR = timedelta(days=1)
"""The maximum age of a bulk approval that can be undone."""
CARDS_AT_ONCE = 20
"""The number of cards that a worker renews before it checks again whether to stop."""


@dataclass(frozen=True)
class WithheldState:
    """The state of an undone bulk approval.

    Attributes:
        cards: the number of the bulk's approvals that decided their cards.
        started: the number of these cards whose calls had already started; final once `left` is 0.
        left: the number of these cards that are withheld and not renewed yet.
        votes: the number of the bulk's approvals that are votes, because their cards need other
            people too.
    """

    bulk_id: UUID
    cards: int
    started: int
    left: int
    votes: int = 0

    @property
    def waiting_again(self) -> int:
        """The number of approvals whose cards were replaced by new waiting cards."""
        return self.cards - self.started - self.left

    @property
    def undone(self) -> int:
        """The number of cards that this person approved in the bulk."""
        return self.cards + self.votes

    @property
    def text(self) -> str:
        """The state in words: `120 had already started. 180 are waiting again.`"""
        so_far = " so far" if self.left else ""
        started = f"{self.started:,} had already started{so_far}. " if self.started else ""
        left = f" {self.left:,} more are still coming back and will not start." if self.left else ""
        waiting = (
            f"{self.waiting_again:,} {'is' if self.waiting_again == 1 else 'are'} waiting again."
            if self.cards
            else ""
        )
        votes = (
            f" {self.votes:,} {'vote' if self.votes == 1 else 'votes'} withdrawn."
            if self.votes
            else ""
        )
        return f"{started}{waiting}{left}{votes}".strip()


def withhold(member: Membership, bulk_id: UUID) -> WithheldState:
    """Undo a bulk approval of this member: once this is committed, none of its waiting calls
    starts. Undoing it again has no effect.

    Raises:
        Forbidden
        NotFound: this member approved no such bulk in the last 24 hours.
    """
    require_approver(member)
    state = _read(member.organization_id, member.user_id, bulk_id)
    if not state.cards and not state.votes:
        raise NotFound(f"there is no bulk approval {bulk_id} of yours")
    with transaction.atomic():
        _, is_new = WithheldBulk.objects.get_or_create(
            organization_id=member.organization_id, user_id=member.user_id, bulk_id=bulk_id
        )
        if is_new:
            subject = f"organization:{member.organization_id}"
            audit.record(member, "bulk_undone", subject, bulk=str(bulk_id), cards=state.cards)
        transaction.on_commit(notify.request_renewal)
        transaction.on_commit(partial(notify.ring_inbox, member.organization_id))
    return state


def read_state(member: Membership, bulk_id: UUID) -> WithheldState:
    """Read the progress of undoing a bulk approval of this member, or else of another member.

    Raises:
        NotFound: nobody has undone a bulk with this id.
    """
    rows = WithheldBulk.objects.filter(organization_id=member.organization_id, bulk_id=bulk_id)
    row = rows.filter(user_id=member.user_id).first() or rows.first()
    if row is None:
        raise NotFound(f"there is no undone bulk approval {bulk_id}")
    return _read(row.organization_id, row.user_id, bulk_id)


def refuse_undone(member: Membership, bulk_id: UUID | None) -> None:
    """Raise Conflict if this member has undone the bulk, because a decision added to it could not
    start a call."""
    if bulk_id is not None and _select_own(member).filter(bulk_id=bulk_id).exists():
        raise Conflict(f"the bulk {bulk_id} was undone; decide with another bulk_id")


def renew_some() -> bool:
    """Renew some cards of withheld bulks, and withdraw some of the bulks' votes, each under its
    run's lock. Return False if no card was renewed and no vote was withdrawn.

    The cards are chosen at random, so that several workers rarely choose the same cards.
    """
    withheld = Approval.objects.filter(
        WithheldBulk.find_for_approval(), status=ApprovalStatus.APPROVED
    )
    voted = Approval.objects.filter(votes__in=Vote.select_undone(), status=ApprovalStatus.PENDING)
    done = 0
    for cards, renew in ((withheld, _renew), (voted, _withdraw)):
        for card_id in list(cards.order_by("?").values_list("pk", flat=True)[:CARDS_AT_ONCE]):
            with log_and_continue(f"renewing card {card_id}"):
                done += renew(card_id)
    return done > 0


def _renew(card_id: int) -> bool:
    cards = Approval.objects.filter(
        pk=card_id, status=ApprovalStatus.APPROVED, tool_call__status=CallStatus.APPROVED
    )
    cards = cards.select_related("tool_call", "decided_by")
    card = cards.first()
    if card is None:
        return False
    current = judge_current(card)
    with run_transaction(card.run_id) as tx:
        card = cards.first()
        if card is None or card.decided_by is None:
            return False
        vote = Vote.select_undone().filter(approval=card).select_related("voter").first()
        renew_undone(tx, card, current, vote.voter if vote else card.decided_by)
        return True


def _withdraw(card_id: int) -> bool:
    with run_transaction(Approval.objects.values_list("run_id", flat=True).get(pk=card_id)) as tx:
        card = Approval.objects.select_related("tool_call", "run").get(pk=card_id)
        undone = Vote.select_undone().filter(approval=card).select_related("voter")
        withdrawn = [withdraw(tx, card, vote.voter) for vote in undone]
    return any(withdrawn)


def _select_own(member: Membership) -> QuerySet[WithheldBulk]:
    return WithheldBulk.objects.filter(
        organization_id=member.organization_id, user_id=member.user_id
    )


def _select_bulk(organization_id: int, user_id: int, bulk_id: UUID) -> QuerySet[Approval]:
    """Select this person's approvals in the bulk, in any state, that had a grace period and are
    recent enough to undo."""
    recent = Approval.objects.filter(
        organization_id=organization_id,
        decided_at__gt=Now() - UNDOABLE_FOR,
        start_after__isnull=False,
    )
    return recent.filter(bulk_id=bulk_id, decided_by_id=user_id)


def _read(organization_id: int, user_id: int, bulk_id: UUID) -> WithheldState:
    counts = (
        _select_bulk(organization_id, user_id, bulk_id)
        .order_by()
        .aggregate(
            cards=Count("pk"),
            started=Count("pk", filter=Q(status=ApprovalStatus.CONSUMED)),
            left=Count("pk", filter=Q(status=ApprovalStatus.APPROVED)),
        )
    )
    votes = Vote.objects.filter(bulk_id=bulk_id, voter_id=user_id, cast_at__gt=Now() - UNDOABLE_FOR)
    beside_others = votes.filter(approval__organization_id=organization_id).exclude(
        approval__decided_by=user_id
    )
    return WithheldState(
        bulk_id, **counts, votes=beside_others.values("approval__tool_call").distinct().count()
    )
