"""What an inbox' sockets send: how many cards wait, whenever that changed."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Max

from agents.models import Approval, ApprovalStatus

from .feeds import Feed, Seat, Viewer, in_thread, still_allowed


class InboxSeat(Seat):
    """A socket at the inbox; `seen` is the state that it was told last."""

    seen: tuple[int, int] | None = None

    def hear(self, message: dict[str, Any]) -> None:
        """Nothing but bells is rung here."""


class InboxFeed(Feed):
    """Counts the organisation's waiting cards; a card that took another's place counts as a change too."""

    def __init__(self, group: str, organization_id: int) -> None:
        super().__init__(group)
        self.organization_id = organization_id
        self.state: tuple[int, int] | None = None

    async def read(self) -> None:
        viewers = {seat.viewer for seat in self.seats}
        allowed, self.state = await _count(self.organization_id, viewers)
        self.expel_others(viewers, allowed)
        for seat in self.seats:
            seat.woken.set()


@in_thread
def _count(organization_id: int, viewers: set[Viewer]) -> tuple[set[Viewer], tuple[int, int]]:
    waiting = Approval.objects.filter(organization_id=organization_id, status=ApprovalStatus.PENDING)
    figures = waiting.aggregate(many=Count("pk"), newest=Max("pk"))
    return still_allowed(viewers), (figures["many"], figures["newest"] or 0)
