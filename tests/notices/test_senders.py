"""The registry of senders: each kind of channel has a sender, and a delivery of an unknown kind is
never sent by the sender of another kind."""

from __future__ import annotations

import pytest

from agents.accounts.notice_facts import NoticeKind
from agents.deliveries.channels import CHANNELS
from agents.deliveries.engine import send_next
from agents.deliveries.models import DeliveryStatus
from agents.deliveries.outboxes import OUTBOXES
from agents.notices.models import ChannelKind, Delivery
from agents.notices.outbox import add_notice, build_card_notice
from agents.notices.spreading import spread_notices
from agents.webhooks.sending import KIND
from tests.mail_server import MailServer
from tests.notices.conftest import add_address
from tests.world import World


def test_each_kind_of_channel_has_a_sender() -> None:
    assert set(CHANNELS) == set(OUTBOXES) == {*ChannelKind, KIND}


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("redis_url")
def test_a_delivery_of_a_kind_without_a_sender_fails(
    world: World, mail: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_address(world.member("approver"))
    add_notice(build_card_notice(NoticeKind.CARD, world.card()))
    spread_notices()
    monkeypatch.delitem(CHANNELS, ChannelKind.EMAIL)
    assert send_next(ChannelKind.EMAIL)
    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.problem) == (
        DeliveryStatus.FAILED,
        "this version of Gadget cannot send by 'email'",
    )
    assert mail.received == []
