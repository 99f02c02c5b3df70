"""A rig for each channel, and the fixtures of notices and webhooks."""

from __future__ import annotations

import pytest

from agents.notices.channels import add_chat
from agents.notices.models import Channel
from tests.chat_server import ChatServer
from tests.deliveries.rigs import ChatRig, MailRig, PushRig, Rig, WebhookRig
from tests.mail_server import MailServer
from tests.notices.conftest import add_address, channel, mail, service, world  # noqa: F401
from tests.notices.test_chat import confirm, ntfy, server  # noqa: F401
from tests.push_service import PushService
from tests.webhooks.conftest import receiver  # noqa: F401
from tests.webhooks.receiver import Receiver
from tests.workshop import Workshop
from tests.workshop.fixtures import (  # noqa: F401
    _django_db_helper,
    commits_do_not_wait_for_the_disk,
    conversation_cache_is_checked,
    model,
    recorder,
    toolbox,
    workshop,
)
from tests.world import World

RIGS = ("mail", "push", "chat", "webhook")


@pytest.fixture
def mail_rig(world: World, mail: MailServer) -> Rig:  # noqa: F811
    add_address(world.member("approver"))
    return MailRig(world, mail)


@pytest.fixture
def push_rig(world: World, service: PushService, channel: Channel) -> Rig:  # noqa: F811
    assert channel.confirmed_at
    return PushRig(world, service)


@pytest.fixture
def chat_rig(world: World, server: ChatServer, ntfy: str) -> Rig:  # noqa: F811
    confirm(add_chat(world.member("approver"), ntfy))
    return ChatRig(world, server)


@pytest.fixture
def webhook_rig(workshop: Workshop, receiver: Receiver) -> Rig:  # noqa: F811
    return WebhookRig(workshop, receiver)


@pytest.fixture(params=RIGS)
def rig(request: pytest.FixtureRequest) -> Rig:
    """Return the rig of each channel in turn."""
    found: Rig = request.getfixturevalue(f"{request.param}_rig")
    return found
