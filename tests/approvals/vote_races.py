"""Races for the last vote: many people approve one card at the same time, but its approval rule
needs only a few approvals."""

from __future__ import annotations

import threading

from django.contrib.auth.models import User
from django.db import OperationalError

from agents.accounts.models import AuditEntry, Membership, Role
from agents.approval_rules.models import ApprovalRule
from agents.platform.database_outages import describe_outage
from agents.platform.refusals import AlreadyDecided
from agents.runs.models import Approval, ApprovalStatus, Vote
from tests.recorder import Recorder
from tests.workshop import Workshop, all_at_once, asking, call

VOTERS = 50
NEEDED = 3


class Crowd:
    """Fifty approvers, and a rule that needs three of them."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        organization = workshop.organization
        names = [f"{organization.slug}-voter-{number}" for number in range(VOTERS)]
        users = User.objects.bulk_create([User(username=name) for name in names])
        self._members = Membership.objects.bulk_create(
            [Membership(organization=organization, user=user, role=Role.APPROVER) for user in users]
        )
        ApprovalRule.objects.create(organization=organization, name="Three people", needed=NEEDED)

    def race(self, recorder: Recorder, name: str) -> None:
        """Let the whole crowd approve one card at the same time, and check that exactly the first
        three approvals counted."""
        self._workshop.play(asking(call("probe.effect", name=name)))
        card = self._workshop.card(self._workshop.work())
        answers: dict[str, ApprovalStatus | None] = {}
        lock = threading.Lock()

        def approve(member: Membership) -> None:
            answer = self._approve(card, member)
            with lock:
                answers[member.user.get_username()] = answer

        all_at_once([lambda member=member: approve(member) for member in self._members])  # type: ignore[misc]
        counted = [username for username, status in answers.items() if status is not None]
        assert sorted(answers.values(), key=str) == sorted(
            [
                ApprovalStatus.APPROVED,
                *[ApprovalStatus.PENDING] * (NEEDED - 1),
                *[None] * (VOTERS - NEEDED),
            ],
            key=str,
        )
        votes = Vote.objects.filter(approval=card, withdrawn_at=None).order_by("pk")
        assert sorted(votes.values_list("voter__username", flat=True)) == sorted(counted)
        (approved,) = (
            username for username, status in answers.items() if status == ApprovalStatus.APPROVED
        )
        assert Approval.objects.get(pk=card.pk).decided_by == votes.last().voter  # type: ignore[union-attr]
        audited = AuditEntry.objects.filter(subject=f"approval:{card.pk}").values_list(
            "action", "actor"
        )
        assert [actor for action, actor in audited if action == "card_approved"] == [
            f"user:{approved}"
        ]
        assert sum(action == "vote_cast" for action, _ in audited) == NEEDED - 1
        self._workshop.drive(card.run)
        assert recorder.arrivals[name] == 1

    def _approve(self, card: Approval, member: Membership) -> ApprovalStatus | None:
        """Approve the card, and retry while the database is busy. Return the card's status, or None
        if other people had already decided it."""
        try:
            return ApprovalStatus(self._workshop.approve(card, by=member).status)
        except AlreadyDecided:
            return None
        except OperationalError as error:
            if not describe_outage(error):
                raise
            return self._approve(card, member)
