"""Fixtures for tests of webhooks: a receiver, a webhook that the workshop's admin added, and the
engine's fixtures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings

from agents.deliveries.engine import send_next
from agents.webhooks.changes import WebhookTerms, make_webhook
from agents.webhooks.models import Webhook, WebhookKind
from agents.webhooks.sending import KIND
from gadget_site.private_hosts import LOOPBACK
from tests.webhooks.receiver import Receiver, open_receiver
from tests.workshop import Workshop, read_everything
from tests.workshop.fixtures import (  # noqa: F401
    _django_db_helper,
    commits_do_not_wait_for_the_disk,
    conversation_cache_is_checked,
    model,
    recorder,
    toolbox,
    workshop,
)


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    """Yield a receiver on this machine that the installation allows."""
    settings.ALLOWED_PRIVATE_HOSTS = LOOPBACK
    with open_receiver() as opened:
        yield opened


def add_webhook(workshop: Workshop, receiver: Receiver, **terms: Any) -> tuple[Webhook, str]:  # noqa: F811
    """Add a webhook, by default for all kinds of events; return it with its secret."""
    defaults = {"name": "Other system", "address": receiver.url, "kinds": WebhookKind.values}
    return make_webhook(workshop.admin, WebhookTerms(**{**defaults, **terms}))


def send_next_delivery(*, only_quick: bool = False) -> bool:
    """Send the next due delivery to a webhook, as a worker does; return False if there is none."""
    return send_next(KIND, only_healthy=only_quick)


def send_all() -> int:
    """Read all events and send everything that is due, as a worker does; return the number of
    attempts."""
    read_everything()
    tries = 0
    while send_next_delivery():
        tries += 1
    return tries
