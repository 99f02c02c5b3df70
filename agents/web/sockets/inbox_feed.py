"""The feed of an organization's inbox: the number of pending cards, and the stop of the organization."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max
from django.template.loader import get_template

from agents.accounts.models import Organization
from agents.approvals.models import Approval, ApprovalStatus
from agents.web.jinja_environment import JINJA
from agents.web.sockets.database import database_to_async
from agents.web.sockets.feeds import Feed, Subscriber
from agents.web.sockets.viewers import Viewer, filter_allowed


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

    def to_json(self) -> str:
        """Build the message: `{"type": "inbox_changed", "payload": {"pending": 2, "stopped": {"by", "at"}}, "html"}`.

        The HTML is the banner of the stop.
        """
        stopped, html = None, ""
        if self.stopped_at is not None:
            stopped = {"by": self.stopped_by, "at": self.stopped_at.isoformat()}
            banner = get_template("parts/stop_banner.html", using=JINJA)
            html = banner.render({"stopped_by": self.stopped_by, "stopped_at": self.stopped_at})
        payload = {"pending": self.pending, "stopped": stopped}
        return json.dumps({"type": "inbox_changed", "payload": payload, "html": html}, ensure_ascii=False)


class InboxSubscriber(Subscriber):
    """A socket that watches the inbox; `sent_state` is the state that it sent last."""

    sent_state: InboxState | None = None

    def deliver(self, message: dict[str, Any]) -> None:
        """Ignore the message, because only bells matter here."""


class InboxFeed(Feed):
    """The feed that reads the state of one organization's inbox."""

    def __init__(self, group: str, organization_id: int) -> None:
        super().__init__(group)
        self.organization_id = organization_id
        self.state: InboxState | None = None

    async def read(self) -> None:
        viewers = {subscriber.viewer for subscriber in self.subscribers}
        allowed, self.state = await _read_inbox(self.organization_id, viewers)
        self.revoke_lost_access(viewers, allowed)
        self.wake_subscribers()


@database_to_async
def _read_inbox(organization_id: int, viewers: set[Viewer]) -> tuple[set[Viewer], InboxState]:
    waiting = Approval.objects.filter(organization_id=organization_id, status=ApprovalStatus.PENDING)
    counts = waiting.aggregate(pending=Count("pk"), newest=Max("pk"))
    stops = Organization.objects.filter(pk=organization_id, stopped_at__isnull=False)
    stopped_by, stopped_at = stops.values_list("stopped_by", "stopped_at").first() or ("", None)
    state = InboxState(counts["pending"], counts["newest"] or 0, stopped_by, stopped_at)
    return filter_allowed(viewers), state
