"""Browser push: encrypted for one browser, signed by this installation, forgotten when the browser is gone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django import Settings

from agents.accounts.models import AuditEntry
from agents.approvals.decisions import Decision, deny
from agents.approvals.models import Approval, ApprovalStatus
from agents.notices.channels import add_browser, confirm_channel
from agents.notices.models import Channel, ChannelKind, Delivery, DeliveryStatus, NoticeKind
from agents.notices.outbox import add_notice, build_card_notice
from agents.notices.sending import send_next, withdraw_next
from agents.notices.spreading import spread_notices
from agents.notices.web_push import Subscription, encrypt, get_public_key, make_key_if_missing
from agents.platform.refusals import Invalid
from gadget_site.private_hosts import LOOPBACK
from tests.push_service import BrowserKeys, PushService, from_base64, to_base64
from tests.world import World, change
from tools.contract import PrivateHosts

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]

CANARY = "canary-4711"


@pytest.fixture
def service(settings: Settings) -> Iterator[PushService]:
    settings.DEBUG = True  # a push service without TLS is for the demo and for tests
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
def test_a_browser_reads_the_sentence_the_page_and_the_number_of_cards(world: World, service: PushService) -> None:
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
def test_no_push_shows_a_value(world: World, service: PushService) -> None:
    world.records[0].name = f"Acme {CANARY}"
    world.records[0].save()
    run = world.run(task=CANARY, title=CANARY)
    tell_card(world, run=run, params=change(world.records[0], CANARY))
    send_all()
    assert len(service.messages) == 1
    assert CANARY not in str(service.messages)


def test_only_the_browser_can_read_it(world: World, service: PushService, channel: Channel) -> None:
    tell_card(world)
    send_all()
    (body,) = service.raw
    assert b"decision" not in body
    with pytest.raises(InvalidTag):
        BrowserKeys(BrowserKeys.make().private, service.keys.auth).decrypt(body)
    with pytest.raises(InvalidTag):
        BrowserKeys(service.keys.private, bytes(16)).decrypt(body)


def test_the_example_of_rfc_8291_is_read() -> None:
    """The test's own browser reads the message of the standard's appendix A."""
    private = int.from_bytes(from_base64("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"), "big")
    keys = BrowserKeys(ec.derive_private_key(private, ec.SECP256R1()), from_base64("BTBZMqHH6r4Tts7J_aSIgg"))
    body = (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6"
        "PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )
    assert keys.decrypt(from_base64(body)) == b"When I grow up, I want to be a watermelon"


def test_each_message_has_a_new_key() -> None:
    keys = BrowserKeys.make()
    subscription = Subscription("https://push.example.com", to_base64(keys.public), to_base64(keys.auth))
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
def test_a_browser_that_is_gone_is_forgotten_after_the_third_answer(
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


def test_a_browser_that_comes_back_is_kept(world: World, service: PushService, channel: Channel) -> None:
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
def test_a_push_service_that_fails_is_tried_again(world: World, service: PushService) -> None:
    service.status = 503
    tell_card(world)
    send_all()
    assert Delivery.objects.get().problem == "127.0.0.1 answered 503"
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


def test_a_decided_card_leaves_the_screen_once(world: World, service: PushService, channel: Channel) -> None:
    first, second = tell_card(world), tell_card(world)
    send_all()
    assert not withdraw_next(), "both wait"
    digest = Delivery.objects.get(notice__approval=first).notice.approval.digest  # type: ignore[union-attr]
    deny(world.member("admin"), first, Decision(digest))
    service.messages.clear()
    assert withdraw_next()
    assert service.messages == [{"close": [f"card-{first}"], "waiting": 1}]
    assert not withdraw_next()
    assert Delivery.objects.get(is_on_screen=True).notice.approval_id == second


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
def test_what_is_no_subscription_is_refused(world: World, service: PushService, field: str, value: str) -> None:
    with pytest.raises(Invalid):
        add_browser(world.member("viewer"), Subscription(**{**service.form, field: value}), "Firefox")
    assert not Channel.objects.exists()


def test_a_push_service_without_tls_is_refused_outside_the_demo(
    world: World, service: PushService, settings: Settings
) -> None:
    settings.DEBUG = False
    with pytest.raises(Invalid):
        add_browser(world.member("viewer"), Subscription(**service.form), "Firefox")


def test_the_same_browser_is_renewed(world: World, service: PushService, channel: Channel) -> None:
    again = add_browser(world.member("approver"), Subscription(**service.form), "Chrome on Linux")
    assert list(Channel.objects.all()) == [again]
    assert again.confirmed_at is None


def test_a_card_that_expired_stays_on_the_screen(world: World, service: PushService, channel: Channel) -> None:
    card = world.card()
    Approval.objects.filter(pk=card.pk).update(status=ApprovalStatus.EXPIRED)
    add_notice(build_card_notice(NoticeKind.CARD_EXPIRED, card))
    spread_notices()
    send_all()
    assert [message["title"] for message in service.messages] == [
        "Nobody decided in time: Update a record, asked by Dana"
    ]
    assert not withdraw_next()


def test_several_leave_the_screen_with_the_last_card(world: World, service: PushService, channel: Channel) -> None:
    cards = [tell_card(world), tell_card(world)]
    send_all()
    assert service.messages[0]["tag"] == "several"
    service.messages.clear()
    for pk in cards:
        deny(world.member("admin"), pk, Decision(Approval.objects.get(pk=pk).digest))
    assert withdraw_next()
    assert service.messages == [{"close": [f"card-{pk}" for pk in cards] + ["several"], "waiting": 0}]


def test_another_failure_forgives_earlier_answers(world: World, service: PushService, channel: Channel) -> None:
    tell_card(world)
    for service.status in (410, 410, 503, 410):
        send_all()
    assert Channel.objects.get(pk=channel.pk).gone_answers == 1


def test_without_its_key_the_installation_sends_nothing(world: World, service: PushService, channel: Channel) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE notices_pushkey SET private_key = 'of another key'")
    assert get_public_key() == ""
    tell_card(world)
    send_all()
    assert Delivery.objects.get().problem == "the installation's key for push is missing or cannot be read"
