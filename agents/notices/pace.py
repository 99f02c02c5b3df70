"""Decide when notices are sent: immediately, in a digest or never, and not during quiet hours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta, tzinfo
from enum import StrEnum

from agents.accounts.notice_facts import NoticeKind
from agents.notices.models import CARD_KINDS, RUN_KINDS

UNDELAYED = (NoticeKind.BREAK_GLASS,)
"""The kinds of notices that quiet hours do not delay."""


AT_ONCE_BY_DEFAULT = frozenset((*CARD_KINDS, *RUN_KINDS, NoticeKind.BREAK_GLASS, NoticeKind.CODE))
"""The kinds of notices that are sent immediately by default; all other kinds go into the daily
digest."""


class Pace(StrEnum):
    """The choices for how soon a notice is sent."""

    AT_ONCE = "at_once"
    HOURLY = "hourly"
    DAILY = "daily"
    NEVER = "never"


def find_default_pace(kind: str) -> Pace:
    """Return the default pace of a kind, for a person who has chosen none."""
    return Pace.AT_ONCE if kind in AT_ONCE_BY_DEFAULT else Pace.DAILY


@dataclass(frozen=True)
class PaceRules:
    """One person's preferences.

    Attributes:
        paces: the pace for each kind of notice.
        quiet: the beginning and the end of the quiet hours; the end may be on the next day. None if
            there are no quiet hours.
        digest_at: the time of the daily digest.
        zone: the time zone of all these times.
    """

    paces: Mapping[str, Pace] = field(default_factory=dict)
    quiet: tuple[time, time] | None = None
    digest_at: time = time(8)
    zone: tzinfo = UTC

    def find_due_time(self, kind: str, now: datetime) -> datetime | None:
        """Find the time at which to send a notice of this kind that is created now; None if it is
        never sent.

        The time is in UTC and is never before `now`.
        """
        pace = self.paces.get(kind, find_default_pace(kind))
        if pace == Pace.NEVER:
            return None
        due = now
        if pace == Pace.HOURLY:
            due = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        elif pace == Pace.DAILY:
            due = self._find_next(self.digest_at, now)
        return (
            due.astimezone(UTC)
            if kind in UNDELAYED
            else self._leave_quiet_hours(due).astimezone(UTC)
        )

    def _leave_quiet_hours(self, moment: datetime) -> datetime:
        if self.quiet is None:
            return moment
        begin, end = self.quiet
        local = moment.astimezone(self.zone).time()
        is_quiet = begin <= local < end if begin <= end else local >= begin or local < end
        return self._find_next(end, moment) if is_quiet else moment

    def _find_next(self, at: time, moment: datetime) -> datetime:
        """Find the next moment at which the clock in the person's time zone shows this time."""
        day = moment.astimezone(self.zone).date()
        for days in range(3):
            found = datetime.combine(day + timedelta(days=days), at, tzinfo=self.zone).astimezone(
                UTC
            )
            if found >= moment:
                return found
        raise ValueError(f"{at} does not come within three days")
