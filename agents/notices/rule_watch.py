"""Watch for cards that escalate under approval rules, and for cards that nobody can approve."""

from __future__ import annotations

import time

from agents.accounts.models import Organization
from agents.accounts.notice_facts import NoticeKind
from agents.approval_rules.models import ApprovalRule
from agents.approvals.votes import CardStanding, find_standings
from agents.notices.models import Notice
from agents.notices.outbox import add_notice, build_card_notice
from agents.platform.error_boundary import log_and_continue
from agents.runs.engine.timing import timing
from agents.runs.models import Approval, ApprovalKind, ApprovalStatus

EVERY_S = 30.0
MAX_CARDS = 200
"""The maximum number of cards of one organization that one check covers; the next check continues
with the following cards."""


class RuleWatch:
    """Checks the waiting cards of organizations with approval rules, and remembers its position in
    each organization."""

    def __init__(self) -> None:
        self._due_at = 0.0
        self._last: dict[int, int] = {}

    def tell_if_due(self) -> int:
        """Write new notices if the last check was at least 30 seconds ago; return their number."""
        if time.monotonic() < self._due_at:
            return 0
        self._due_at = time.monotonic() + EVERY_S * timing().scale
        ruled = ApprovalRule.objects.filter(is_active=True).values("organization_id")
        organizations = Organization.objects.filter(pk__in=ruled) | Organization.objects.filter(
            four_eyes=True
        )
        found = 0
        for organization in organizations.order_by("pk"):
            with log_and_continue(f"watching the cards of organization {organization.pk}"):
                found += self._look(organization)
        return found

    def _look(self, organization: Organization) -> int:
        waiting = Approval.objects.filter(
            organization=organization,
            status=ApprovalStatus.PENDING,
            kind=ApprovalKind.APPROVAL,
            pk__gt=self._last.get(organization.pk, 0),
        )
        cards = list(waiting.select_related("tool_call", "run").order_by("pk")[:MAX_CARDS])
        self._last[organization.pk] = cards[-1].pk if len(cards) == MAX_CARDS else 0
        standings = find_standings(organization, cards)
        found = {
            (card.pk, kind): card
            for card in cards
            if (standing := standings.get(card.pk))
            for kind in _list_kinds(standing)
        }
        told = set(
            Notice.objects.filter(approval__in=[pk for pk, _ in found]).values_list(
                "approval_id", "kind"
            )
        )
        return sum(
            add_notice(build_card_notice(kind, card))
            for (pk, kind), card in found.items()
            if (pk, kind) not in told
        )


def _list_kinds(standing: CardStanding) -> list[NoticeKind]:
    """List the kinds of notices that a card's standing requires."""
    has_escalated = any(
        rule.escalates_after is not None
        and rule.second_group
        and standing.ruled.age >= rule.escalates_after
        for rule in standing.rules
    )
    kinds = [NoticeKind.ESCALATED] if has_escalated else []
    return [*kinds, NoticeKind.STUCK] if standing.stuck else kinds
