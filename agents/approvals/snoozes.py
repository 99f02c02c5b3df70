"""Snoozed cards are hidden from one person until a chosen time. Other people still see them, and
they expire as usual."""

from datetime import date, datetime, time, timedelta

from django.db.models import Exists, OuterRef
from django.utils import timezone

from agents.accounts.models import Membership
from agents.approvals.models import Snooze
from agents.platform.refusals import Conflict, Invalid
from agents.platform.row_ids import get_row
from agents.runs.models import Approval, ApprovalStatus

MORNING = time(8)
LONGEST_SNOOZE = timedelta(days=60)


def snooze(member: Membership, approval_id: int, until: str) -> Snooze:
    """Hide a waiting card from this member.

    Args:
        until: `hour` for one hour; or `tomorrow` or a date such as 2026-01-31, on which the card
            returns at 8 a.m.

    Raises:
        NotFound: there is no such card.
        Conflict: the card is no longer waiting.
        Invalid: the time does not have one of these forms, or is not within the next 60 days.
    """
    card = _find_card(member, approval_id)
    if card.status != ApprovalStatus.PENDING:
        raise Conflict("the card is no longer waiting", approval_status=card.status)
    when = _parse_time(until)
    return Snooze.objects.update_or_create(
        user=member.user, tool_call_id=card.tool_call_id, defaults={"until": when}
    )[0]


def end_snooze(member: Membership, approval_id: int) -> None:
    """Show the card again; do nothing if it is not snoozed.

    Raises:
        NotFound: there is no such card.
    """
    card = _find_card(member, approval_id)
    Snooze.objects.filter(user=member.user, tool_call_id=card.tool_call_id).delete()


def list_snoozed_calls(member: Membership) -> list[tuple[int, datetime]]:
    """List the calls whose waiting cards this member has snoozed, each with the end of the
    snooze."""
    waiting = Approval.objects.filter(
        organization_id=member.organization_id,
        status=ApprovalStatus.PENDING,
        tool_call_id=OuterRef("tool_call_id"),
    )
    active = Snooze.objects.filter(
        Exists(waiting), user_id=member.user_id, until__gt=timezone.now()
    )
    return list(active.values_list("tool_call_id", "until"))


def _find_card(member: Membership, approval_id: int) -> Approval:
    cards = Approval.objects.filter(organization_id=member.organization_id)
    return get_row(cards, approval_id, "card")


def _parse_time(until: str) -> datetime:
    now = timezone.localtime()
    if until == "hour":
        return now + timedelta(hours=1)
    try:
        day = now.date() + timedelta(days=1) if until == "tomorrow" else date.fromisoformat(until)
    except ValueError:
        raise Invalid(
            "until", f"{until[:40]!r} is not a date such as {now.date():%Y-%m-%d}"
        ) from None
    when = datetime.combine(day, MORNING, tzinfo=now.tzinfo)
    if not now < when <= now + LONGEST_SNOOZE:
        raise Invalid("until", f"choose a day within the next {LONGEST_SNOOZE.days} days")
    return when
