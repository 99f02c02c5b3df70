"""Operations on notices: list the notices to a member, and send a failed one again."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import BaseModel, Field

from agents.accounts.models import Membership
from agents.accounts.notice_facts import NoticeKind
from agents.api.auth import get_member
from agents.api.documentation import document_problems
from agents.api.lookup import PathId
from agents.api.paging import take_newest
from agents.api.schemas import CursorPage, PageQuery
from agents.deliveries.models import DeliveryStatus
from agents.notices.deliveries import describe_delivery, select_deliveries, send_notice_again
from agents.notices.models import ChannelKind, Delivery

router = Router(tags=["Notices"])


class NoticeFilter(PageQuery):
    """Filters for notices."""

    status: DeliveryStatus | None = None
    kind: NoticeKind | None = None


class NoticeDetail(BaseModel):
    """One notice on its way to a member by one channel."""

    id: str
    kind: NoticeKind
    status: DeliveryStatus
    text: str = Field(description="One sentence, without values.")
    channel: ChannelKind
    channel_label: str = Field(description="The address, masked, or the name of the browser.")
    approval_id: str | None
    run_id: str | None
    created_at: datetime
    due_at: datetime
    ended_at: datetime | None
    problem: str = Field(description="Why the notice was not sent; usually empty.")


class NoticeList(CursorPage[NoticeDetail]):
    """A page of the list of notices."""


@router.get("", response=NoticeList, summary="List notices")
def list_notices(request: HttpRequest, filters: Query[NoticeFilter]) -> NoticeList:
    """List the notices to you, newest first."""
    member = get_member(request)
    rows = select_deliveries(member, of_all=False)
    if filters.status is not None:
        rows = rows.filter(status=filters.status)
    if filters.kind is not None:
        rows = rows.filter(notice__kind=filters.kind)
    page, next_cursor = take_newest(rows, filters)
    return NoticeList(items=[_build_detail(each, member) for each in page], next_cursor=next_cursor)


@router.post(
    "/{notice_id}/retry",
    response=NoticeDetail,
    summary="Send a failed notice again",
    openapi_extra=document_problems(404, 409),
)
def retry_notice(request: HttpRequest, notice_id: PathId) -> NoticeDetail:
    """Send a failed notice again: one to you, or as an admin one to anybody in the organization."""
    member = get_member(request)
    send_notice_again(member, notice_id)
    return _build_detail(select_deliveries(member, of_all=True).get(pk=notice_id), member)


def _build_detail(delivery: Delivery, viewer: Membership) -> NoticeDetail:
    notice, channel = delivery.notice, delivery.channel
    return NoticeDetail(
        id=str(delivery.pk),
        kind=NoticeKind(notice.kind),
        status=DeliveryStatus(delivery.status),
        text=describe_delivery(delivery, viewer).sentence,
        channel=ChannelKind(channel.kind),
        channel_label=channel.label,
        approval_id=None if notice.approval_id is None else str(notice.approval_id),
        run_id=None if notice.run_id is None else str(notice.run_id),
        created_at=delivery.created_at,
        due_at=delivery.due_at,
        ended_at=delivery.ended_at,
        problem=delivery.problem,
    )
