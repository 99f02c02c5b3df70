"""The figures of today's decisions, for an empty inbox."""

from __future__ import annotations

from django.db.models import Count, Q
from django.utils import timezone

from agents.accounts.models import Membership
from agents.runs.models import APPROVED_STATES, Approval, ApprovalKind, ApprovalStatus


def describe_today(member: Membership) -> str:
    """Describe the organization's decisions since midnight: `Today: 34 approved, 2 denied.`; empty
    if there are none."""
    midnight = timezone.localtime(timezone.now()).replace(hour=0, minute=0, second=0, microsecond=0)
    decided = Approval.objects.filter(
        organization_id=member.organization_id, decided_at__gte=midnight
    )
    counts = decided.aggregate(
        approved=Count("pk", filter=Q(status__in=APPROVED_STATES)),
        denied=Count("pk", filter=Q(status=ApprovalStatus.DENIED)),
        answered=Count(
            "pk", filter=Q(status=ApprovalStatus.ANSWERED) & ~Q(kind=ApprovalKind.APPROVAL)
        ),
        dismissed=Count("pk", filter=Q(status=ApprovalStatus.ANSWERED, kind=ApprovalKind.APPROVAL)),
    )
    parts = [f"{count:,} {word}" for word, count in counts.items() if count]
    return f"Today: {', '.join(parts)}." if parts else ""
