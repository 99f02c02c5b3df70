"""Scanners that open every link of a notification cannot decide a card, even if they use the
reader's session."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from agents.accounts.notice_facts import NoticeKind
from agents.deliveries.engine import send_next
from agents.notices.models import ChannelKind
from agents.notices.outbox import add_notice, build_card_notice
from agents.notices.spreading import spread_notices
from agents.runs.models import Approval, ApprovalStatus
from tests.features import feature
from tests.mail_server import MailServer
from tests.notices.conftest import add_address
from tests.world import World

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]

BASE = "http://127.0.0.1:8000"
SCANNERS = 20
ADDRESSES = re.compile(r'(?:action|href|data-api)="((?:/api)?/approvals/[^"#?]*)"')


def find_links(mail: MailServer) -> list[str]:
    (received,) = mail.received
    return re.findall(r"https?://\S+", received.text)


@pytest.fixture
def links(world: World, mail: MailServer) -> list[str]:
    """The links in a real notification about a card."""
    add_address(world.member("approver"))
    add_notice(build_card_notice(NoticeKind.CARD, world.card()))
    while spread_notices() or send_next(ChannelKind.EMAIL):
        pass
    return find_links(mail)


def test_a_link_contains_only_the_number_of_the_card(links: list[str]) -> None:
    assert links == [f"{BASE}/approvals/{Approval.objects.get().pk}/", f"{BASE}/notices/"]


@feature(
    "The gate",
    "Scanners that open every link of a notification decide nothing",
    "agents/web/views/pages.py",
)
def test_twenty_scanners_that_follow_every_link_do_not_decide_the_card(
    world: World, links: list[str]
) -> None:
    """Half of the scanners have a session that may decide; all of them follow the addresses of
    forms as well."""
    before = Approval.objects.values().get()
    for number in range(SCANNERS):
        client = world.client("approver") if number % 2 else Client()
        paths = {link.removeprefix(BASE) for link in links}
        for path in list(paths):
            paths |= set(ADDRESSES.findall(client.get(path).content.decode()))
        assert number % 2 == 0 or f"/approvals/{before['id']}/approve/" in paths
        for path in paths:
            client.get(path)
            client.head(path)
    assert Approval.objects.values().get() == before
    assert before["status"] == ApprovalStatus.PENDING
