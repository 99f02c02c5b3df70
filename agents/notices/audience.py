"""Find the people to notify, and decide whether a notice still concerns a person."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from agents.accounts.models import Membership, Organization, Role
from agents.accounts.notice_facts import NoticeKind
from agents.approvals.votes import CardStanding, find_standings
from agents.notices.models import (
    ADMIN_KINDS,
    CARD_KINDS,
    RUN_KINDS,
    SHARED_KINDS,
    Channel,
    FollowedRun,
    Notice,
)
from agents.runs.models import Approval, ApprovalKind, ApprovalStatus
from tools.toolbox.objections import Objection


@dataclass(frozen=True)
class Audience:
    """The members of one organization, and everything that decides which of them to notify.

    Attributes:
        members: the members with an active account.
        standings: the approval rules and votes of each card, by card id; cards without rules are
            missing.
        followers: the ids of the members who follow each run, by run id.
    """

    members: tuple[Membership, ...]
    standings: dict[int, CardStanding]
    followers: dict[int, set[int]]

    @classmethod
    def load(cls, organization: Organization, notices: Collection[Notice]) -> Audience:
        """Load the audience for these notices of the organization, with at most twelve queries,
        however many notices there are.

        Args:
            notices: the notices, each loaded with its run, its card, and the card's call and run.
        """
        members = Membership.objects.filter(organization=organization, user__is_active=True)
        cards = {
            notice.approval.pk: notice.approval for notice in notices if notice.approval is not None
        }
        judged = [card for card in cards.values() if card.kind == ApprovalKind.APPROVAL]
        followers = defaultdict[int, set[int]](set)
        if ended := [
            notice.run_id
            for notice in notices
            if notice.kind in RUN_KINDS and notice.run_id is not None
        ]:
            followed = FollowedRun.objects.filter(
                run_id__in=ended, membership__organization=organization
            )
            for run_id, member_id in followed.values_list("run_id", "membership_id"):
                followers[run_id].add(member_id)
        found = tuple(members.select_related("user").order_by("pk"))
        return cls(found, find_standings(organization, judged), followers)

    def find(self, notice: Notice) -> list[Membership]:
        """Find the members to notify; return an empty list if the notice is no longer needed."""
        if notice.kind in CARD_KINDS and (
            notice.approval is None or notice.approval.status != ApprovalStatus.PENDING
        ):
            return []
        return [member for member in self.members if self._concerns(notice, member)]

    def find_objection(self, notice: Notice, channel: Channel) -> Objection | None:
        """Return the reason why this notice is no longer sent by this channel; None if it is still
        sent."""
        if notice.kind == NoticeKind.CODE:
            return Objection("the address is already confirmed") if channel.confirmed_at else None
        if notice.kind == NoticeKind.BREAK_GLASS:
            # Sent in any case: the admin who used break-glass could remove the roles of the people
            # to notify.
            return None
        if (
            notice.kind in CARD_KINDS
            and notice.approval
            and notice.approval.status != ApprovalStatus.PENDING
        ):
            return Objection("the card is closed")
        if channel.is_shared:
            is_needed = self.concerns_all(notice) and self.is_led(channel)
            return None if is_needed else Objection("it is no longer needed")
        is_meant = any(member.pk == channel.membership_id for member in self.find(notice))
        return None if is_meant else Objection("it is no longer for this person")

    def is_led(self, channel: Channel) -> bool:
        """Return True if the member who added a shared channel is still an active admin."""
        return any(
            member.pk == channel.membership_id and member.may(Role.ADMIN) for member in self.members
        )

    def concerns_all(self, notice: Notice) -> bool:
        """Return True if shared channels get this notice, because a member of the organization
        needs it."""
        return notice.kind in SHARED_KINDS and bool(self.find(notice))

    def _concerns(self, notice: Notice, member: Membership) -> bool:
        is_orphan = notice.kind == NoticeKind.SCHEDULE and notice.user_id is None
        if notice.kind in ADMIN_KINDS or is_orphan:
            return member.may(Role.ADMIN)
        if notice.kind == NoticeKind.TRIGGER_REFUSED and member.may(Role.ADMIN):
            return True
        if notice.user_id is not None:
            return notice.user_id == member.user_id
        if notice.approval is not None:
            return self._may_decide(notice.approval, member)
        if (
            notice.kind == NoticeKind.RUN_FAILED
            and notice.run
            and notice.run.created_by_id == member.user_id
        ):
            return True
        return notice.run_id is not None and member.pk in self.followers.get(notice.run_id, ())

    def _may_decide(self, card: Approval, member: Membership) -> bool:
        if card.kind == ApprovalKind.QUESTION:
            return member.may(Role.OPERATOR)
        standing = self.standings.get(card.pk)
        return member.may(Role.APPROVER) and (
            standing is None or standing.may_decide(member).may_approve
        )
