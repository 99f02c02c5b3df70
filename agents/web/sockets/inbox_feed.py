"""The feed of an organization's inbox: the number of pending cards, the stop of the organization, and changed rows.

A page with the list of waiting cards gets the rows that are new, as HTML, and the ids of those that are gone. A page
that missed changes sees it by the numbers in each message, and loads its list again.
"""

from __future__ import annotations

import json
import time
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max
from django.template.loader import get_template

from agents.accounts.models import Organization
from agents.approvals.models import Approval, ApprovalStatus
from agents.web.jinja_environment import JINJA
from agents.web.lists.inbox_rows import load_new_rows, render_rows
from agents.web.sockets.database import database_to_async
from agents.web.sockets.feeds import Feed, Subscriber
from agents.web.sockets.viewers import Viewer, filter_allowed

MAX_KEPT_CHANGES = 100
MAX_KEPT_PRESENCE = 20
MIN_PAUSE_S = 1.0
MAX_NEW_ROWS = 50
"""New rows in one message; a page loads its list again if there are more."""


@dataclass(frozen=True)
class RowChange:
    """The rows that a reading found new, as HTML, and the ids of those that are gone."""

    html: str
    gone: tuple[int, ...]


@dataclass(frozen=True)
class InboxState:
    """The state of the inbox, which sockets send whenever it changes.

    Attributes:
        newest: the id of the newest pending card, so that replacing a card also counts as a change.
        stopped_by: the person who stopped the organization; empty without a stop.
    """

    pending: int
    newest: int
    stopped_by: str = ""
    stopped_at: datetime | None = None

    def to_json(self, changes: list[RowChange] | None) -> str:
        """Build the message: `{"type": "inbox_changed", "payload": {"pending": 2, "stopped": {"by", "at"}}, "html"}`.

        The HTML is the banner of the stop. For a page with the list, the payload also has `newest` and the ids that
        are `gone`, and `rows` has the new rows as HTML.

        Args:
            changes: the changes of the list; None for pages without it.
        """
        stopped, html = None, ""
        if self.stopped_at is not None:
            stopped = {"by": self.stopped_by, "at": self.stopped_at.isoformat()}
            banner = get_template("parts/stop_banner.html", using=JINJA)
            html = banner.render({"stopped_by": self.stopped_by, "stopped_at": self.stopped_at})
        payload: dict[str, Any] = {"pending": self.pending, "stopped": stopped}
        message = {"type": "inbox_changed", "payload": payload, "html": html}
        if changes is not None:
            payload |= {"newest": self.newest, "gone": [str(pk) for change in changes for pk in change.gone]}
            message["rows"] = "".join(change.html for change in changes)
        return json.dumps(message, ensure_ascii=False)


class InboxSubscriber(Subscriber):
    """A socket that watches the inbox.

    Attributes:
        wants_rows: its page shows the list of waiting cards.
        sent_state: the state that it sent last.
        sent_changes: the number of the feed's changes that it has sent; None before the first message.
    """

    sent_state: InboxState | None = None
    sent_changes: int | None = None

    def __init__(self, viewer: Viewer, wants_rows: bool = False) -> None:
        super().__init__(viewer)
        self.wants_rows = wants_rows
        self.presence: deque[str] = deque(maxlen=MAX_KEPT_PRESENCE)
        self._shown_at = -MIN_PAUSE_S

    def may_show_itself(self) -> bool:
        """Return True at most once a second, so that a page cannot flood the others."""
        now = time.monotonic()
        if now - self._shown_at < MIN_PAUSE_S:
            return False
        self._shown_at = now
        return True


class InboxFeed(Feed):
    """The feed that reads the state of one organization's inbox, and its rows if a subscriber shows them."""

    def __init__(self, group: str, organization_id: int) -> None:
        super().__init__(group)
        self.organization_id = organization_id
        self.state: InboxState | None = None
        self.change_count = 0
        self._changes: deque[RowChange] = deque(maxlen=MAX_KEPT_CHANGES)
        self._known: frozenset[int] | None = None

    async def read(self) -> None:
        viewers = {subscriber.viewer for subscriber in self.subscribers}
        reads_rows = any(isinstance(each, InboxSubscriber) and each.wants_rows for each in self.subscribers)
        self._known = self._known if reads_rows else None
        found = await _read_inbox(self.organization_id, viewers, reads_rows, self._known)
        allowed, self.state, self._known, change = found
        if change is not None:
            self._changes.append(change)
            self.change_count += 1
        self.revoke_lost_access(viewers, allowed)
        self.wake_subscribers()

    def receive(self, message: dict[str, Any]) -> None:
        """Pass on to the pages with the list that somebody is looking at a card."""
        if message["type"] != "presence":
            return
        payload = {"user": message["user"], "card": message["card"]}
        text = json.dumps({"type": "presence", "payload": payload}, ensure_ascii=False)
        for each in self.subscribers:
            if isinstance(each, InboxSubscriber) and each.wants_rows:
                each.presence.append(text)
                each.news.set()

    def read_rows_soon(self) -> None:
        """Read at once if a page now shows the list and no rows have been read: later changes are told from these."""
        if self._known is None:
            self.ring()

    def take_changes(self, subscriber: InboxSubscriber) -> list[RowChange] | None:
        """Return the changes that the subscriber has not sent; none of those that are too old to be kept.

        Return None for a page without the list.
        """
        if not subscriber.wants_rows:
            return None
        sent = self.change_count if subscriber.sent_changes is None else subscriber.sent_changes
        subscriber.sent_changes = self.change_count
        unsent = self.change_count - sent
        return list(self._changes)[-unsent:] if 0 < unsent <= len(self._changes) else []


@database_to_async
def _read_inbox(
    organization_id: int, viewers: set[Viewer], reads_rows: bool, known: frozenset[int] | None
) -> tuple[set[Viewer], InboxState, frozenset[int] | None, RowChange | None]:
    """Read the state and, where rows are wanted, the ids of the waiting cards and how they differ from the known ones.

    The state comes from the same ids, so that a page can tell by its numbers whether it has missed a change.
    """
    waiting = Approval.objects.filter(organization_id=organization_id, status=ApprovalStatus.PENDING)
    change, ids = None, None
    if reads_rows:
        ids = frozenset(waiting.order_by().values_list("pk", flat=True))
        pending, newest = len(ids), max(ids, default=0)
        if known is not None and ids != known:
            change = _build_change(organization_id, ids - known, known - ids)
    else:
        counts = waiting.aggregate(pending=Count("pk"), newest=Max("pk"))
        pending, newest = counts["pending"], counts["newest"] or 0
    stops = Organization.objects.filter(pk=organization_id, stopped_at__isnull=False)
    stopped_by, stopped_at = stops.values_list("stopped_by", "stopped_at").first() or ("", None)
    return filter_allowed(viewers), InboxState(pending, newest, stopped_by, stopped_at), ids, change


def _build_change(organization_id: int, new: frozenset[int], gone: frozenset[int]) -> RowChange:
    html = (
        render_rows(load_new_rows(Organization.objects.get(pk=organization_id), new))
        if 0 < len(new) <= MAX_NEW_ROWS
        else ""
    )
    return RowChange(html, tuple(sorted(gone)))
