"""Channels: an address is used once its code has been entered, and only its owner sees it."""

from __future__ import annotations

import pytest
from django.db import connection
from pytest_django import Settings

from agents.accounts.models import AuditEntry
from agents.notices.channels import (
    MAX_CHANNELS,
    MAX_WRONG_CODES,
    add_email,
    confirm_channel,
    remove_channel,
)
from agents.notices.models import Channel, Delivery
from agents.platform.refusals import Conflict, Invalid, NotFound
from tests.features import feature
from tests.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("has_mail")]

ADDRESS = "ann@example.com"


@pytest.fixture
def has_mail(settings: Settings) -> None:
    settings.EMAIL_HOST = "mail.example.com"


@feature(
    "The gate",
    "An address counts once the code that was sent there was entered",
    "agents/notices/channels.py",
)
def test_the_code_confirms_an_address(world: World) -> None:
    member = world.member("viewer")
    channel = add_email(member, f" {ADDRESS} ")
    assert channel.confirmed_at is None
    assert Delivery.objects.get().channel == channel
    code = channel.code
    confirmed = confirm_channel(member, channel.pk, f"{code[:4]} {code[4:]}")
    assert confirmed.confirmed_at is not None
    channel.refresh_from_db()
    assert (channel.code, channel.address) == ("", ADDRESS)
    with pytest.raises(Conflict):
        confirm_channel(member, channel.pk, code)


def test_a_wrong_code_confirms_nothing_and_several_wrong_codes_invalidate_the_right_one(
    world: World,
) -> None:
    member = world.member("viewer")
    channel = add_email(member, ADDRESS)
    wrong = f"{(int(channel.code) + 1) % 10**8:08}"
    for _ in range(MAX_WRONG_CODES):
        with pytest.raises(Invalid):
            confirm_channel(member, channel.pk, wrong)
    with pytest.raises(Conflict, match="Too many wrong codes"):
        confirm_channel(member, channel.pk, channel.code)
    channel.refresh_from_db()
    assert channel.confirmed_at is None


@pytest.mark.parametrize("other", ["admin", "outsider"])
def test_nobody_else_can_confirm_or_remove_an_address(world: World, other: str) -> None:
    channel = add_email(world.member("viewer"), ADDRESS)
    with pytest.raises(NotFound):
        confirm_channel(world.member(other), channel.pk, channel.code)
    with pytest.raises(NotFound):
        remove_channel(world.member(other), channel.pk)


@pytest.mark.parametrize(
    "text", ["", "ann", "ann@", "ann@example.com\nBcc: ben@example.com", "Ann <ann@example.com>"]
)
def test_a_malformed_address_is_refused(world: World, text: str) -> None:
    with pytest.raises(Invalid):
        add_email(world.member("viewer"), text)
    assert not Channel.objects.exists()


def test_a_duplicate_address_and_an_address_over_the_limit_are_refused(world: World) -> None:
    member = world.member("viewer")
    add_email(member, ADDRESS)
    with pytest.raises(Conflict, match="already"):
        add_email(member, ADDRESS)
    for number in range(MAX_CHANNELS - 1):
        add_email(member, f"ann{number}@example.com")
    with pytest.raises(Conflict, match="Remove one"):
        add_email(member, "last@example.com")


def test_without_a_mail_server_only_the_demo_accepts_addresses(
    world: World, settings: Settings
) -> None:
    settings.EMAIL_HOST, settings.GADGET_SHOWS_MESSAGES = "", False
    with pytest.raises(Conflict, match="MAIL_URL"):
        add_email(world.member("viewer"), ADDRESS)
    settings.GADGET_SHOWS_MESSAGES = True
    assert add_email(world.member("viewer"), ADDRESS).pk


def test_the_audit_records_each_change_without_the_address(world: World) -> None:
    member = world.member("viewer")
    channel = add_email(member, ADDRESS)
    confirm_channel(member, channel.pk, channel.code)
    remove_channel(member, channel.pk)
    entries = AuditEntry.objects.filter(action__startswith="channel_").order_by("seq")
    assert [entry.action for entry in entries] == [
        "channel_added",
        "channel_confirmed",
        "channel_removed",
    ]
    assert ADDRESS not in str(list(entries.values()))


def test_the_address_is_encrypted_at_rest(world: World) -> None:
    channel = add_email(world.member("viewer"), ADDRESS)
    with connection.cursor() as cursor:
        cursor.execute("SELECT address, code FROM notices_channel WHERE id = %s", [channel.pk])
        address, code = cursor.fetchone()
    assert "ann" not in address
    assert channel.code not in code
