"""Members' preferences for notices: which kinds they want, and how soon."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import time
from zoneinfo import ZoneInfo, available_timezones

from django.db import transaction

from agents.accounts import audit
from agents.accounts.models import Membership
from agents.accounts.notice_facts import NoticeKind
from agents.notices.models import NoticeChoices
from agents.notices.pace import Pace, PaceRules, find_default_pace
from agents.platform.refusals import Invalid

logger = logging.getLogger(__name__)

CHOSEN_KINDS = tuple(
    kind for kind in NoticeKind if kind not in (NoticeKind.CODE, NoticeKind.BREAK_GLASS)
)
"""The kinds for which members choose a pace. Break-glass is not among them, because no admin can
opt out of these notices."""


@dataclass(frozen=True)
class ChosenTimes:
    """The times that a member chose, as they were typed; empty quiet hours mean that there are
    none."""

    quiet_from: str = ""
    quiet_until: str = ""
    digest_at: str = "08:00"
    time_zone: str = "UTC"


def load_pace_rules(member_ids: Collection[int]) -> dict[int, PaceRules]:
    """Load members' preferences by membership id, in one query; members without preferences are
    left out."""
    rows = NoticeChoices.objects.filter(membership_id__in=member_ids)
    return {row.membership_id: _read_or_default(row) for row in rows}


def load_choices(member: Membership) -> NoticeChoices:
    """Load the member's preferences; if they have none, return an unsaved row with the defaults."""
    return NoticeChoices.objects.filter(membership=member).first() or NoticeChoices(
        membership=member
    )


def save_choices(member: Membership, paces: Mapping[str, str], times: ChosenTimes) -> NoticeChoices:
    """Save the member's preferences for notices.

    Args:
        paces: the chosen pace for each kind of notice; a kind that is missing keeps its pace.

    Raises:
        Invalid: a pace, a time or the time zone does not exist, or the quiet hours lack a start or
            an end, or both are the same.
    """
    row = load_choices(member)
    texts = {
        kind: row.paces.get(kind.value, find_default_pace(kind.value)) for kind in CHOSEN_KINDS
    } | dict(paces)
    chosen = {kind.value: _read_pace(kind, texts[kind]) for kind in CHOSEN_KINDS}
    if bool(times.quiet_from) != bool(times.quiet_until):
        raise Invalid(
            "quiet_until" if times.quiet_from else "quiet_from",
            "Enter a start and an end, or leave both empty.",
        )
    _check_time_zone(times.time_zone)
    row.paces = chosen
    row.quiet_from = _read_time("quiet_from", times.quiet_from) if times.quiet_from else None
    row.quiet_until = _read_time("quiet_until", times.quiet_until) if times.quiet_until else None
    if row.quiet_from is not None and row.quiet_from == row.quiet_until:
        raise Invalid("quiet_until", "Start and end are the same.")
    row.digest_at = _read_time("digest_at", times.digest_at)
    row.time_zone = times.time_zone
    with transaction.atomic():
        row.save()
        audit.record(member, "notice_choices_changed", f"member:{member.pk}", **chosen)
    return row


def save_time_zone(member: Membership, time_zone: str) -> None:
    """Save only the member's time zone.

    Raises:
        Invalid: there is no such time zone.
    """
    _check_time_zone(time_zone)
    row = load_choices(member)
    if row.time_zone != time_zone:
        row.time_zone = time_zone
        row.save()


def find_time_zone(organization_id: int, user_id: int) -> str:
    """Return the time zone that a user chose in an organization; empty if none was chosen."""
    rows = NoticeChoices.objects.filter(
        membership__organization_id=organization_id, membership__user_id=user_id
    )
    return rows.values_list("time_zone", flat=True).first() or ""


def _check_time_zone(name: str) -> None:
    if name not in available_timezones():
        raise Invalid("time_zone", f"{name[:60]!r} is not a time zone such as Europe/London.")


def _read_or_default(row: NoticeChoices) -> PaceRules:
    """Read the row; return the defaults if it cannot be read, for example because this machine
    lacks its time zone."""
    try:
        return _read(row)
    except (KeyError, ValueError) as error:
        logger.error("choices %s cannot be read, so their defaults count: %s", row.pk, error)  # noqa: TRY400
        return PaceRules()


def _read(row: NoticeChoices) -> PaceRules:
    begin, end = row.quiet_from, row.quiet_until
    quiet = (begin, end) if begin is not None and end is not None else None
    paces = {kind: Pace(pace) for kind, pace in row.paces.items()}
    return PaceRules(paces, quiet, row.digest_at, ZoneInfo(row.time_zone))


def _read_pace(kind: NoticeKind, text: str) -> Pace:
    try:
        return Pace(text)
    except ValueError:
        raise Invalid(kind.value, f"{text[:40]!r} is not one of {', '.join(Pace)}.") from None


def _read_time(field: str, text: str) -> time:
    try:
        return time.fromisoformat(text).replace(second=0, microsecond=0, tzinfo=None)
    except ValueError:
        raise Invalid(field, f"{text[:40]!r} is not a time such as 22:00.") from None
