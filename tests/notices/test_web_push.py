"""Browser push: encrypted for one browser, signed by this installation, and removed when the
browser is gone."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django import Settings

from agents.accounts.models import AuditEntry
from agents.accounts.notice_facts import NoticeKind
from agents.deliveries.channels import push as web_push
from agents.deliveries.channels.push import (
    Subscription,
    encrypt,
    find_contact,
    get_public_key,
)
from agents.deliveries.engine import send_next
from agents.deliveries.models import DeliveryStatus
from agents.deliveries.receivers import MAX_AT_ONE_HOST
from agents.notices.channels import add_browser, confirm_channel
from agents.notices.models import Channel, ChannelKind, Delivery
from agents.notices.outbox import add_notice, build_card_notice
from agents.notices.spreading import spread_notices
from agents.notices.texts import describe
from agents.platform.refusals import Invalid
from agents.runs.engine.timing import timing
from agents.worker.notice_sender import NoticeSender
from tests.awaiting import await_that
from tests.features import feature
from tests.notices.conftest import add_address
from tests.push_service import BrowserKeys, PushService, from_base64, to_base64
from tests.workshop import read_everything
from tests.world import World, change
from tools.contract import PrivateHosts

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]

CANARY = "canary-4711"


def tell_card(world: World, **more: object) -> int:
    card = world.card(**more)  # type: ignore[arg-type]
    add_notice(build_card_notice(NoticeKind.CARD, card))
    spread_notices()
    return card.pk


def send_all() -> None:
    Delivery.objects.filter(status=DeliveryStatus.WAITING).update(due_at=Now())
    while send_next(ChannelKind.PUSH):
        pass


@pytest.mark.usefixtures("channel")
def test_a_browser_receives_a_sentence_the_address_of_the_page_and_the_number_of_cards(
    world: World, service: PushService
) -> None:
    pk = tell_card(world)
    send_all()
    assert service.messages == [
        {
            "title": "A decision is waiting: Update a record, asked by Dana",
            "path": f"/approvals/{pk}/",
            "tag": f"card-{pk}",
            "waiting": 1,
        }
    ]
    assert service.headers[0]["topic"] == f"card-{pk}"
    assert service.senders == {get_public_key()}


@pytest.mark.usefixtures("channel")
def test_a_push_contains_no_values(world: World, service: PushService) -> None:
    world.records[0].name = f"Acme {CANARY}"
    world.records[0].save()
    run = world.run(task=CANARY, title=CANARY)
    tell_card(world, run=run, params=change(world.records[0], CANARY))
    send_all()
    assert len(service.messages) == 1
    assert CANARY not in str(service.messages)


@feature(
    "The gate",
    "Browsers are notified by push, encrypted for them alone",
    "agents/deliveries/channels/push.py",
)
def test_only_the_browser_can_decrypt_a_push(
    world: World, service: PushService, channel: Channel
) -> None:
    tell_card(world)
    send_all()
    (body,) = service.raw
    assert b"decision" not in body
    with pytest.raises(InvalidTag):
        BrowserKeys(BrowserKeys.make().private, service.keys.auth).decrypt(body)
    with pytest.raises(InvalidTag):
        BrowserKeys(service.keys.private, bytes(16)).decrypt(body)


def test_the_example_of_rfc_8291_can_be_decrypted() -> None:
    """The keys of a test browser decrypt the example in section 5 of the standard."""
    private = int.from_bytes(from_base64("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"), "big")
    keys = BrowserKeys(
        ec.derive_private_key(private, ec.SECP256R1()), from_base64("BTBZMqHH6r4Tts7J_aSIgg")
    )
    body = (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6"
        "PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )
    assert keys.decrypt(from_base64(body)) == b"When I grow up, I want to be a watermelon"


def test_each_push_is_encrypted_with_a_new_salt_and_a_new_key() -> None:
    keys = BrowserKeys.make()
    subscription = Subscription(
        "https://push.example.com", to_base64(keys.public), to_base64(keys.auth)
    )
    one, other = encrypt(b"same", subscription), encrypt(b"same", subscription)
    assert keys.decrypt(one) == keys.decrypt(other) == b"same"
    assert one[:16] != other[:16]
    assert one[21:86] != other[21:86]


def test_the_code_confirms_a_browser(world: World, service: PushService) -> None:
    member = world.member("viewer")
    channel = add_browser(member, Subscription(**service.form), "Firefox")
    send_all()
    (message,) = service.messages
    assert message["title"] == "Gadget can reach this browser"
    confirm_channel(member, channel.pk, message["code"])


@pytest.mark.parametrize("status", [404, 410])
def test_a_browser_is_removed_after_three_responses_say_that_it_is_gone(
    world: World, service: PushService, channel: Channel, status: int
) -> None:
    service.status = status
    tell_card(world)
    for _ in range(2):
        send_all()
    assert Channel.objects.get(pk=channel.pk).gone_answers == 2
    send_all()
    assert not Channel.objects.filter(pk=channel.pk).exists()
    assert AuditEntry.objects.filter(action="channel_removed", actor="gadget").exists()


@pytest.mark.parametrize("status", [401, 403])
def test_a_subscription_for_another_key_shows_the_services_error_and_ends(
    world: World, service: PushService, channel: Channel, status: int
) -> None:
    service.status, service.words = status, "the key\n does not  match"
    tell_card(world)
    send_all()
    kept = Channel.objects.get(pk=channel.pk)
    assert (
        kept.problem
        == f"127.0.0.1 responded with {status}: the key does not match. Add this browser again."
    )
    for _ in range(2):
        send_all()
    assert not Channel.objects.filter(pk=channel.pk).exists()


def test_a_person_who_lost_a_browser_is_notified_by_other_channels(
    world: World, service: PushService, channel: Channel
) -> None:
    add_address(world.member("approver"))
    service.status = 410
    tell_card(world)
    for _ in range(3):
        send_all()
    read_everything()
    spread_notices()
    told = Delivery.objects.get(notice__kind=NoticeKind.CHANNEL_LOST)
    assert (told.channel.kind, told.channel.membership) == (
        ChannelKind.EMAIL,
        world.member("approver"),
    )
    text = describe(told.notice, told.channel)
    assert (
        text.sentence
        == "You are no longer notified here, because the address is gone: “Chrome on Linux”"
    )
    assert text.path == "/notices/"


@pytest.mark.usefixtures("channel")
@pytest.mark.parametrize(
    ("retry_after", "seconds"), [("600", 600), ("", 15), ("soon", 15), ("9" * 9, 24 * 3600)]
)
def test_a_pause_that_a_push_service_asks_for_is_respected_up_to_a_day(
    world: World, service: PushService, retry_after: str, seconds: int
) -> None:
    service.status, service.retry_after = 429, retry_after
    tell_card(world)
    send_all()
    waits = (Delivery.objects.get().due_at - timezone.now()).total_seconds()
    assert waits == pytest.approx(seconds * timing().scale, abs=5)


def test_the_contact_is_the_first_secure_origin_or_else_the_mail_sender(settings: Settings) -> None:
    settings.DEFAULT_FROM_EMAIL = "gadget@localhost"
    settings.ALLOWED_ORIGINS = ["http://gadget.internal", "https://gadget.example.com"]
    assert find_contact() == "https://gadget.example.com"
    settings.ALLOWED_ORIGINS = []
    assert find_contact() == "mailto:gadget@localhost"


@pytest.mark.parametrize(
    "endpoint",
    ["https://10.0.0.7/push", "https://localhost/push", "https://[::1]/push", "https://push/1"],
)
def test_a_private_push_service_is_refused_when_it_is_added(
    world: World, service: PushService, settings: Settings, endpoint: str
) -> None:
    settings.PRIVATE_PUSH_HOSTS = PrivateHosts()
    with pytest.raises(Invalid, match="private address"):
        add_browser(
            world.member("viewer"),
            Subscription(**{**service.form, "endpoint": endpoint}),
            "Firefox",
        )
    public = Subscription(**{**service.form, "endpoint": "https://push.example.com/1"})
    assert add_browser(world.member("viewer"), public, "Firefox").kind == ChannelKind.PUSH, (
        "control"
    )


def test_a_hanging_browser_does_not_delay_others(
    world: World, service: PushService, channel: Channel
) -> None:
    """Two browsers use a service that hangs, and a third browser uses another one: the third gets
    its push while the others wait."""
    with PushService() as healthy:
        Channel.objects.filter(pk=channel.pk).update(host="hanging")
        second = add_browser(
            world.member("approver"),
            Subscription(**{**service.form, "auth": to_base64(b"2" * 16)}),
            "2",
        )
        other = add_browser(world.member("approver"), Subscription(**healthy.form), "elsewhere")
        Channel.objects.filter(pk=second.pk).update(host="hanging")
        Channel.objects.update(confirmed_at=timezone.now(), code="")
        Delivery.objects.all().delete()
        tell_card(world)
        service.answering.clear()
        senders = [threading.Thread(target=send_and_close) for _ in range(MAX_AT_ONE_HOST)]
        for sender in senders:
            sender.start()
            assert service.hanging.acquire(timeout=20)
        assert send_next(ChannelKind.PUSH)
        assert len(healthy.messages) == 1
        assert Delivery.objects.get(channel=other).status == DeliveryStatus.SENT
        service.answering.set()
        for sender in senders:
            sender.join(20)
        # The service cannot decrypt for the second browser, which has another secret.
        service.faults.clear()


def test_four_hanging_browsers_leave_a_sender_for_the_others(
    world: World, service: PushService, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four browsers have services that hang, each on its own host; then a notification for another
    browser is due."""
    monkeypatch.setattr(web_push, "_LIMITS", replace(web_push._LIMITS, total_s=120.0))
    for number in range(3):
        form = {**service.form, "auth": to_base64(bytes([number]) * 16)}
        add_browser(world.member("approver"), Subscription(**form), str(number))
    Delivery.objects.all().delete()
    for each in Channel.objects.all():
        hangs = {
            "host": f"hanging{each.pk}",
            "failing_since": Now(),
            "confirmed_at": Now(),
            "code": "",
        }
        Channel.objects.filter(pk=each.pk).update(**hangs)
    tell_card(world)
    service.answering.clear()
    sender = NoticeSender()
    with PushService() as healthy:
        sender.start()
        try:
            for _ in range(3):
                assert service.hanging.acquire(timeout=20)
            # A code is sent to this browser.
            add_browser(world.member("admin"), Subscription(**healthy.form), "elsewhere")
            sender.wake()
            await_that(lambda: bool(healthy.messages), "the healthy browser is told", seconds=20)
            assert not Delivery.objects.filter(
                status=DeliveryStatus.SENT, channel__failing_since__isnull=False
            ).exists()
        finally:
            service.answering.set()
            sender.stop()
            # The service cannot decrypt for three browsers, which have other secrets.
            service.faults.clear()


def send_and_close() -> None:
    try:
        send_next(ChannelKind.PUSH)
    finally:
        connection.close()


def test_a_browser_that_responds_again_is_kept(
    world: World, service: PushService, channel: Channel
) -> None:
    service.status = 410
    tell_card(world)
    for _ in range(2):
        send_all()
    service.status = 201
    send_all()
    kept = Channel.objects.get(pk=channel.pk)
    assert (kept.gone_answers, kept.failing_since) == (0, None)
    assert len(service.messages) == 1


@pytest.mark.usefixtures("channel")
def test_a_failing_push_service_is_retried(world: World, service: PushService) -> None:
    service.status = 503
    tell_card(world)
    send_all()
    assert Delivery.objects.get().problem == "127.0.0.1 responded with 503"
    assert Channel.objects.get().gone_answers == 0
    service.status = 201
    send_all()
    assert len(service.messages) == 1


@pytest.mark.usefixtures("channel")
def test_a_private_address_is_refused_unless_the_installation_allows_it(
    world: World, service: PushService, settings: Settings
) -> None:
    settings.PRIVATE_PUSH_HOSTS = PrivateHosts()
    tell_card(world)
    send_all()
    assert service.messages == []
    assert "private address" in Delivery.objects.get().problem


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("endpoint", "https://["),
        ("endpoint", "ftp://push.example.com/1"),
        ("endpoint", "javascript:alert(1)"),
        ("p256dh", "AAAA"),
        ("p256dh", "ä"),
        ("auth", "AAAA"),
    ],
)
def test_an_invalid_subscription_is_refused(
    world: World, service: PushService, field: str, value: str
) -> None:
    with pytest.raises(Invalid):
        add_browser(
            world.member("viewer"), Subscription(**{**service.form, field: value}), "Firefox"
        )
    assert not Channel.objects.exists()


def test_a_push_service_without_tls_is_refused_outside_the_demo(
    world: World, service: PushService, settings: Settings
) -> None:
    settings.DEBUG = False
    with pytest.raises(Invalid):
        add_browser(world.member("viewer"), Subscription(**service.form), "Firefox")


def test_the_same_browser_replaces_its_subscription(
    world: World, service: PushService, channel: Channel
) -> None:
    again = add_browser(world.member("approver"), Subscription(**service.form), "Chrome on Linux")
    assert list(Channel.objects.all()) == [again]
    assert again.confirmed_at is None


def test_another_failure_resets_the_count_of_gone_responses(
    world: World, service: PushService, channel: Channel
) -> None:
    tell_card(world)
    for service.status in (410, 410, 503, 410):
        send_all()
    assert Channel.objects.get(pk=channel.pk).gone_answers == 1


def test_an_installation_without_its_key_does_not_send_pushes(
    world: World, service: PushService, channel: Channel
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE notices_pushkey SET private_key = 'of another key'")
    assert get_public_key() == ""
    tell_card(world)
    send_all()
    assert (
        Delivery.objects.get().problem
        == "the installation's key for push is missing or cannot be read"
    )
