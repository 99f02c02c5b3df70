"""A mail server and a push service, people with confirmed addresses, and the engine's fixtures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.utils import timezone
from pytest_django import Settings

from agents.accounts.models import Membership
from agents.accounts.notice_facts import NoticeKind
from agents.deliveries.channels.push import Subscription, make_key_if_missing
from agents.deliveries.models import DeliveryStatus
from agents.notices.channels import add_browser, add_known_email
from agents.notices.models import Channel, Delivery, Notice
from gadget_site.private_hosts import LOOPBACK
from tests.mail_server import MailServer
from tests.push_service import PushService
from tests.workshop.fixtures import (  # noqa: F401
    _django_db_helper,
    commits_do_not_wait_for_the_disk,
    conversation_cache_is_checked,
    model,
    recorder,
    toolbox,
    workshop,
)
from tests.world import World, make_world


@pytest.fixture
def mail(settings: Settings) -> Iterator[MailServer]:
    """Yield a mail server for this process."""
    with MailServer() as server:
        server.use_in(settings)
        yield server


@pytest.fixture
def world() -> World:
    return make_world()


@pytest.fixture
def service(settings: Settings) -> Iterator[PushService]:
    settings.DEBUG = True  # only DEBUG accepts a push service without TLS
    settings.PRIVATE_PUSH_HOSTS = LOOPBACK
    make_key_if_missing()
    with PushService() as running:
        yield running


@pytest.fixture
def channel(world: World, service: PushService) -> Channel:
    """Return the approver's confirmed browser."""
    added = add_browser(world.member("approver"), Subscription(**service.form), "Chrome on Linux")
    Channel.objects.filter(pk=added.pk).update(confirmed_at=timezone.now(), code="")
    Delivery.objects.all().delete()
    return Channel.objects.get(pk=added.pk)


def add_address(member: Membership, address: str = "") -> Channel:
    """Give the member a confirmed e-mail address; by default one with their name."""
    address = address or f"{member.user.get_username()}@example.com"
    return add_known_email(member, address)


def make_failed_delivery(member: Membership, kind: NoticeKind = NoticeKind.STOPPED) -> Delivery:
    """Create a notice to the member, and its failed delivery."""
    notice = Notice.objects.create(
        organization=member.organization, kind=kind, key=f"{kind}:{member.pk}", detail="Dana"
    )
    return Delivery.objects.create(
        notice=notice,
        channel=add_address(member),
        status=DeliveryStatus.FAILED,
        due_at=timezone.now(),
        ended_at=timezone.now(),
        problem="the mail server responded: 550",
    )
