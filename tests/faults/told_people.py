"""Add people who are notified of cards by mail, and check that nobody was left out and only kills
caused repeats."""

from __future__ import annotations

from collections import Counter
from urllib.parse import urlsplit

from django.contrib.auth.models import User

from agents.accounts.models import Membership, Organization, Role
from agents.deliveries.models import DeliveryStatus
from agents.notices.models import ChannelKind, Delivery
from agents.runs.models import Approval
from tests.mail_server import MailServer
from tests.notices.conftest import add_address


def add_approvers(organization: Organization, count: int) -> list[Membership]:
    """Add approvers with confirmed addresses."""
    made = []
    for number in range(count):
        user = User.objects.create_user(f"told{number}")
        made.append(
            Membership.objects.create(organization=organization, user=user, role=Role.APPROVER)
        )
        add_address(made[-1])
    return made


def count_told(mail: MailServer) -> Counter[tuple[str, int]]:
    """Count the notifications by recipient and card."""
    return Counter(
        (each.recipient, int(urlsplit(line).path.split("/")[2]))
        for each in list(mail.received)
        for line in each.text.splitlines()
        if "/approvals/" in line
    )


def count_repeats(mail: MailServer, approvers: list[Membership]) -> int:
    """Check that each approver was notified of each card of the organization; return the number of
    repeats.

    A sender records each attempt before it begins, so for each recorded attempt an address gets at
    most one notification of a card. Only a kill causes another attempt.
    """
    told, cards = count_told(mail), Approval.objects.filter(organization=approvers[0].organization)
    deliveries = Delivery.objects.filter(
        channel__membership__in=approvers, channel__kind=ChannelKind.EMAIL
    )
    tries = {
        (f"{name}@example.com", card): number
        for name, card, status, number in deliveries.values_list(
            "channel__membership__user__username", "notice__approval_id", "status", "tries"
        )
        if status == DeliveryStatus.SENT
    }
    expected = {
        (f"{member.user.get_username()}@example.com", pk)
        for member in approvers
        for pk in cards.values_list("pk", flat=True)
    }
    assert tries.keys() == expected, "each delivery was sent"
    untold = expected - told.keys()
    assert not untold, f"{len(untold)} were not told: {sorted(untold)[:5]}"
    too_often = {each: told[each] for each in expected if told[each] > tries[each]}
    assert not too_often, f"told more often than tried: {too_often}"
    return sum(told[each] - 1 for each in expected)
