"""The deliveries that members can see: their own, and for admins also the deliveries of all other
members."""

from __future__ import annotations

from django.conf import settings
from django.db.models import QuerySet
from django.db.models.functions import Now

from agents.accounts.models import Membership, Role
from agents.accounts.notice_facts import NoticeKind
from agents.deliveries import changes
from agents.deliveries.models import DeliveryStatus
from agents.notices.channels import can_send_mail
from agents.notices.models import KNOWN_KINDS, Delivery, Notice
from agents.notices.texts import NoticeText, describe
from agents.platform.row_ids import get_row

_RELATED = ("channel__membership__user", "notice__run__employee", "notice__organization")
_RELATED_TO_CARD = ("notice__approval__tool_call", "notice__approval__run__employee")


def select_deliveries(member: Membership, *, of_all: bool) -> QuerySet[Delivery]:
    """Select the member's deliveries, or those of all members of the organization, newest first.

    Args:
        of_all: True to select the deliveries of all members; ignored unless the member is an admin.
    """
    rows = Delivery.objects.filter(
        channel__membership__organization_id=member.organization_id, notice__kind__in=KNOWN_KINDS
    )
    if not (of_all and member.may(Role.ADMIN)):
        rows = rows.filter(channel__membership=member)
    return rows.select_related(*_RELATED, *_RELATED_TO_CARD).order_by("-pk")


def send_notice_again(member: Membership, delivery_id: int) -> None:
    """Send a failed notice again through the same channel; see `send_again`.

    Raises:
        NotFound: the member cannot see such a notification.
        Conflict: the notification has not failed.
    """
    delivery = get_row(select_deliveries(member, of_all=True), delivery_id, "notification")
    changes.send_again(member, delivery.channel.kind, delivery_id)


def describe_delivery(delivery: Delivery, viewer: Membership) -> NoticeText:
    """Describe the notice of a delivery. A code is shown only to its owner, and only in the demo
    without a mail server."""
    is_shown = (
        delivery.status == DeliveryStatus.SHOWN
        and settings.GADGET_SHOWS_MESSAGES
        and not can_send_mail()
    )
    if delivery.notice.kind == NoticeKind.CODE and not (
        is_shown and delivery.channel.membership_id == viewer.pk
    ):
        return NoticeText("A code to confirm this address", "")
    text = describe(delivery.notice, delivery.channel)
    return NoticeText(text.sentence, "") if delivery.notice.kind == NoticeKind.CODE else text


def drop_all(reason: str) -> None:
    """Drop all unsent notices after a restore, because they may have been sent after the backup."""
    Notice.objects.filter(spread_at=None).update(spread_at=Now())
    changes.end_deliveries(Delivery.objects.all(), DeliveryStatus.DROPPED, reason)
