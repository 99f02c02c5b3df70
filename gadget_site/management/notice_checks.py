"""The doctor's checks of notices and webhooks: the mail server, and addresses with failing
notifications."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.core.mail import get_connection
from django.db.models.functions import Now

from agents.deliveries.channels.mail import describe_failure
from agents.deliveries.channels.push import find_contact
from agents.deliveries.models import DeliveryStatus
from agents.notices.channels import can_send_mail
from agents.notices.models import Channel, ChannelKind, Delivery
from agents.webhooks.models import Webhook
from gadget_site.management.findings import Finding

MAX_NAMED = 5
LATE = timedelta(minutes=10)


def check_notices() -> Iterator[Finding]:
    """Check that the mail server responds, that push services have a contact, that no address
    fails, and that notifications are sent in time."""
    yield _check_mail_server()
    if Channel.objects.filter(kind=ChannelKind.PUSH).exists() and find_contact().endswith(
        "@localhost"
    ):
        text = "push services refuse notifications without a contact: there is no https origin and no sender's address"
        yield Finding(
            "notices",
            text,
            "set ALLOWED_ORIGINS to the https address of Gadget, or MAIL_URL and MAIL_FROM",
        )
    failing = Channel.objects.filter(failing_since__isnull=False, confirmed_at__isnull=False)
    for channel in failing.select_related("membership__user", "membership__organization").order_by(
        "pk"
    )[:MAX_NAMED]:
        member = channel.membership
        who = f"{member.organization.slug}/{member.user.get_username()}"
        text = f"notifications to {who} by {channel.get_kind_display()} fail: {channel.problem}"
        yield Finding(
            "notices",
            text,
            "check the mail server's log, or ask them to correct the address under Notices",
        )
    if late := Delivery.objects.filter(
        status=DeliveryStatus.WAITING, tries=0, due_at__lt=Now() - LATE
    ).count():
        waited = "1 notification has waited" if late == 1 else f"{late:,} notifications have waited"
        yield Finding("notices", f"{waited} for over 10 minutes", "check that a worker is running")
    for webhook in Webhook.objects.filter(is_active=True, failing_since__isnull=False).order_by(
        "pk"
    )[:MAX_NAMED]:
        text = f"deliveries to webhook {webhook.pk} of {webhook.organization.slug} fail: {webhook.problem}"
        yield Finding(
            "notices",
            text,
            "check the receiver, or ask an admin to correct the address under Webhooks",
        )


def _check_mail_server() -> Finding:
    if not can_send_mail():
        return Finding("notices", "there is no mail server, so no e-mail is sent")
    where = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
    server = get_connection()
    try:
        server.open()
        server.close()
    except OSError as error:
        return Finding("notices", f"{where}: {describe_failure(error)}", "check MAIL_URL")
    return Finding("notices", f"the mail server {where} responds")
