"""What an inbox' sockets send: how many cards wait, and who stopped everything, whenever that changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max

from agents.accounts.models import Organization
from agents.approvals.models import Approval, ApprovalStatus
from agents.web.sockets.feeds import Feed, Seat, Viewer, in_thread, still_allowed


@dataclass(frozen=True)
class InboxState:
    """What the sockets tell.

    Attributes:
        newest: the id of the newest waiting card, so that one that took another's place counts as a change too.
        stop: who stopped everything, and when; nothing while it may go on.
    """

    pending: int
    newest: int
    stop: tuple[str, datetime] | None

    def as_payload(self) -> dict[str, Any]:
        """`{"pending": N, "stopped": null or {"by": NAME, "at": TIME}}`"""
        stopped = {"by": self.stop[0], "at": self.stop[1].isoformat()} if self.stop else None
        return {"pending": self.pending, "stopped": stopped}


class InboxSeat(Seat):
    """A socket at the inbox; `seen` is the state that it was told last."""

    seen: InboxState | None = None

    def hear(self, message: dict[str, Any]) -> None:
        """Nothing but bells is rung here."""


class InboxFeed(Feed):
    """Counts the organisation's waiting cards, and looks whether it was stopped."""

    def __init__(self, group: str, organization_id: int) -> None:
        super().__init__(group)
        self.organization_id = organization_id
        self.state: InboxState | None = None

    async def read(self) -> None:
        viewers = {seat.viewer for seat in self.seats}
        allowed, self.state = await _look(self.organization_id, viewers)
        self.expel_others(viewers, allowed)
        for seat in self.seats:
            seat.woken.set()


@in_thread
def _look(organization_id: int, viewers: set[Viewer]) -> tuple[set[Viewer], InboxState]:
    waiting = Approval.objects.filter(organization_id=organization_id, status=ApprovalStatus.PENDING)
    figures = waiting.aggregate(many=Count("pk"), newest=Max("pk"))
    stopped = Organization.objects.filter(pk=organization_id, stopped_at__isnull=False)
    stop = next(((by, at) for by, at in stopped.values_list("stopped_by", "stopped_at") if at is not None), None)
    return still_allowed(viewers), InboxState(figures["many"], figures["newest"] or 0, stop)
