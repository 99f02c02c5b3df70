"""Chat services: notifications reach fake services over real HTTP, through the guarded client, and
are never sent to another host."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import nullcontext
from logging.config import dictConfig

import pytest
import requests
from django.contrib.auth.models import User
from django.db.models.functions import Now
from pytest_django import Settings

from agents.accounts.models import AuditEntry, Membership, Role
from agents.accounts.notice_facts import NoticeKind
from agents.deliveries.channels import chat
from agents.deliveries.channels.chat import MAX_ITEMS, ChatAddress, find_service, may_reach
from agents.deliveries.engine import send_next
from agents.deliveries.failures import DeliveryError
from agents.deliveries.models import DeliveryStatus
from agents.notices.channels import add_chat, confirm_channel, list_channels, remove_channel
from agents.notices.models import Channel, ChannelKind, Delivery
from agents.notices.outbox import add_notice, build_card_notice, build_run_notice
from agents.notices.spreading import spread_notices
from agents.platform.refusals import Conflict, Forbidden, Invalid
from agents.runs.models import RunStatus
from gadget_site.private_hosts import LOOPBACK
from tests.chat_server import ChatServer
from tests.features import feature
from tests.world import World
from tools.contract import PrivateHost, PrivateHosts

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]

TOKEN = "tk-secret-4711"


@pytest.fixture
def server(settings: Settings) -> Iterator[ChatServer]:
    """Yield a service that GADGET_CHAT_HOSTS allows."""
    settings.CHAT_HOSTS = LOOPBACK
    running = ChatServer()
    yield running
    running.close()


@pytest.fixture
def ntfy(server: ChatServer) -> str:
    return f"ntfy://{TOKEN}@127.0.0.1:{server.port}/alerts"


def confirm(channel: Channel) -> Channel:
    Channel.objects.filter(pk=channel.pk).update(confirmed_at=Now(), code="")
    Delivery.objects.all().delete()
    return Channel.objects.get(pk=channel.pk)


def add_member_to(world: World, name: str) -> Membership:
    user = User.objects.create_user(name)
    return Membership.objects.create(organization=world.acme, user=user, role=Role.ADMIN)


def tell_card(world: World) -> None:
    add_notice(build_card_notice(NoticeKind.CARD, world.card()))
    while spread_notices() or send_next(ChannelKind.CHAT):
        pass


def test_a_card_is_sent_to_ntfy(world: World, server: ChatServer, ntfy: str) -> None:
    confirm(add_chat(world.member("approver"), ntfy))
    tell_card(world)
    (body,) = server.bodies
    assert (body["topic"], body["title"]) == ("alerts", "Gadget")
    assert "A decision is waiting: Update a record, asked by Dana" in body["message"]
    assert Delivery.objects.get().status == DeliveryStatus.SENT


def test_a_card_is_sent_to_a_mattermost_webhook(world: World, server: ChatServer) -> None:
    """Slack's webhooks have the same form, but Slack's server cannot run on this machine."""
    confirm(add_chat(world.member("approver"), f"mmost://127.0.0.1:{server.port}/{'a' * 26}"))
    tell_card(world)
    assert server.paths == [f"/hooks/{'a' * 26}"]
    assert "A decision is waiting: Update a record, asked by Dana" in server.bodies[0]["text"]


def test_a_code_confirms_the_address(world: World, server: ChatServer, ntfy: str) -> None:
    member = world.member("approver")
    channel = add_chat(member, ntfy)
    assert channel.own_name == "ntfy"
    send_next(ChannelKind.CHAT)
    assert channel.code in server.bodies[0]["message"]
    assert confirm_channel(member, channel.pk, channel.code).confirmed_at is not None


class TestSharedChannel:
    @pytest.fixture
    def shared(self, world: World, ntfy: str) -> Channel:
        return confirm(add_chat(world.member("admin"), ntfy, is_shared=True))

    def test_gets_each_card_once_but_does_not_get_private_notices_of_runs(
        self, world: World, server: ChatServer, shared: Channel
    ) -> None:
        tell_card(world)
        add_notice(build_run_notice(NoticeKind.RUN_FAILED, world.run(RunStatus.FAILED), 1))
        assert spread_notices() == 1
        assert not send_next(ChannelKind.CHAT)
        assert len(server.bodies) == 1

    @pytest.mark.parametrize("kind", ChannelKind)
    def test_of_a_kind_other_than_chat_gets_nothing(
        self, world: World, shared: Channel, caplog: pytest.LogCaptureFixture, kind: ChannelKind
    ) -> None:
        Channel.objects.filter(pk=shared.pk).update(kind=kind)
        add_notice(build_card_notice(NoticeKind.CARD, world.card()))
        spread_notices()
        assert Delivery.objects.exists() is (kind == ChannelKind.CHAT)
        assert ("cannot be shared" in caplog.text) is (kind == ChannelKind.PUSH)

    def test_can_be_added_only_by_an_admin(self, world: World, ntfy: str) -> None:
        with pytest.raises(Forbidden):
            add_chat(world.member("approver"), ntfy, is_shared=True)

    def test_is_visible_to_every_admin_and_removable_by_them(
        self, world: World, shared: Channel
    ) -> None:
        other = add_member_to(world, "zoe")
        assert list_channels(other) == [shared]
        assert list_channels(world.member("approver")) == []
        remove_channel(other, shared.pk)
        assert not Channel.objects.exists()

    def test_gets_nothing_after_its_admin_is_deactivated(
        self, world: World, server: ChatServer, shared: Channel
    ) -> None:
        User.objects.filter(pk=shared.membership.user_id).update(is_active=False)
        tell_card(world)
        assert not server.bodies

    def test_gets_nothing_after_its_admin_loses_the_role(
        self, world: World, server: ChatServer, shared: Channel
    ) -> None:
        add_notice(build_card_notice(NoticeKind.CARD, world.card()))
        spread_notices()
        Membership.objects.filter(pk=shared.membership_id).update(role=Role.APPROVER)
        send_next(ChannelKind.CHAT)
        assert Delivery.objects.get().status == DeliveryStatus.DROPPED
        tell_card(world)
        assert not server.bodies


def test_a_name_does_not_become_a_mention_or_a_link(
    world: World, server: ChatServer, ntfy: str
) -> None:
    world.employee.name = "<!channel> @everyone [win](https://evil.example) *now*"
    world.employee.save()
    confirm(add_chat(world.member("approver"), ntfy))
    tell_card(world)
    assert not set("<>@[]*`") & set(server.bodies[0]["message"])


@pytest.mark.parametrize(
    "address",
    [
        *(
            "json://127.0.0.1/x",
            "file:///etc/passwd",
            "mailto://a:b@example.com",
            "syslog://",
            "exec://ls",
            "hello",
            "",
        ),
        *("ntfys://host/one/two", "tgram://123456789:abcdefghijklmnopqrstuvwxyz012345678"),
        *(
            "slack://",
            "ntfys://host/topic?template=/etc/passwd",
            f"ntfys://host/{'a' * 500}",
            "ntfys://ho\nst/topic",
        ),
    ],
)
def test_an_address_of_an_unknown_service_is_refused(world: World, address: str) -> None:
    with pytest.raises(Invalid, match="not an address of a supported"):
        add_chat(world.member("approver"), address)


def test_a_duplicate_address_is_refused(world: World, server: ChatServer, ntfy: str) -> None:
    add_chat(world.member("approver"), ntfy)
    with pytest.raises(Conflict, match="already"):
        add_chat(world.member("approver"), ntfy)


@feature(
    "The gate",
    "Chat services are notified through the guarded client, and no other host is asked",
    "agents/deliveries/channels/chat.py",
)
def test_a_host_that_is_not_allowed_is_not_contacted(
    settings: Settings, server: ChatServer, ntfy: str
) -> None:
    chosen = ChatAddress.parse(ntfy)
    assert chosen is not None
    chosen.send("Gadget", "Hello")
    assert len(server.bodies) == 1
    settings.CHAT_HOSTS = PrivateHosts()
    with pytest.raises(DeliveryError, match=r"127\.0\.0\.1 is not in GADGET_CHAT_HOSTS"):
        chosen.send("Gadget", "Hello")
    assert len(server.bodies) == 1


@pytest.mark.parametrize(("named", "is_sent"), [("localhost", True), ("other.example", False)])
def test_a_host_can_be_allowed_by_its_name(
    settings: Settings, server: ChatServer, named: str, *, is_sent: bool
) -> None:
    settings.CHAT_HOSTS = PrivateHosts((PrivateHost(name=named),))
    chosen = ChatAddress.parse(f"ntfy://localhost:{server.port}/alerts")
    assert chosen is not None
    with nullcontext() if is_sent else pytest.raises(DeliveryError, match="GADGET_CHAT_HOSTS"):
        chosen.send("Gadget", "Hello")
    assert len(server.bodies) == is_sent


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("slack.com", True),
        ("hooks.slack.com", True),
        ("evilslack.com", False),
        ("slack.com.evil.example", False),
        ("com", False),
    ],
)
def test_only_the_hosts_of_a_service_and_their_subdomains_may_be_reached(
    settings: Settings, host: str, *, expected: bool
) -> None:
    settings.CHAT_HOSTS = PrivateHosts()
    assert may_reach(host, ("slack.com", "")) == expected


@pytest.mark.parametrize(
    ("address", "service"),
    [
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ", "Slack"),
        ("discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js", "Discord"),
        ("tgram://123456789:abcdefghijklmnopqrstuvwxyz012345678/1234", "Telegram"),
        ("ntfy://alerts", "ntfy"),
        ("gotifys://push.example/abcdefghijklmno", "Gotify"),
        ("ntfys://push.example/alerts", "ntfy"),
        ("workflows://prod.westus.logic.azure.com/flow/signature", "Microsoft Teams"),
    ],
)
def test_each_known_service_is_recognized(settings: Settings, address: str, service: str) -> None:
    settings.CHAT_HOSTS = PrivateHosts((PrivateHost(name="push.example"),))
    assert find_service(address) == service


@pytest.mark.parametrize(
    "address",
    [
        *(
            "gotifys://push.example/abcdefghijklmno",
            "ntfys://push.example/alerts",
            f"mmosts://10.0.0.1/{'a' * 26}",
        ),
        "workflows://evil.example/flow/signature",
    ],
)
def test_a_server_that_is_not_allowed_is_refused_when_it_is_added(
    world: World, settings: Settings, address: str
) -> None:
    settings.CHAT_HOSTS = PrivateHosts()
    with pytest.raises(Invalid, match="is not in GADGET_CHAT_HOSTS"):
        add_chat(world.member("approver"), address)


def test_plain_http_is_refused_when_it_is_added(world: World, settings: Settings) -> None:
    settings.CHAT_HOSTS = PrivateHosts()
    with pytest.raises(Invalid, match="Use https: change "):
        add_chat(world.member("approver"), "ntfy://ntfy.sh/alerts")


def test_many_notices_are_summarized_in_one_line_with_a_link(
    world: World, server: ChatServer, ntfy: str
) -> None:
    confirm(add_chat(world.member("approver"), ntfy))
    for _ in range(MAX_ITEMS + 1):
        add_notice(build_card_notice(NoticeKind.CARD, world.card()))
    while spread_notices() or send_next(ChannelKind.CHAT):
        pass
    (body,) = server.bodies
    assert body["message"].startswith(
        f"{MAX_ITEMS + 1} decisions are waiting\nhttp://127.0.0.1:8000/approvals/\n"
    )


def test_a_redirect_is_not_followed(server: ChatServer, ntfy: str) -> None:
    other = ChatServer()
    server.status, server.location = 302, f"http://127.0.0.1:{other.port}/"
    chosen = ChatAddress.parse(ntfy)
    assert chosen is not None
    with pytest.raises(DeliveryError, match="ntfy responded with 302"):
        chosen.send("Gadget", "Hello")
    assert not other.bodies
    other.close()


@pytest.mark.parametrize(
    ("status", "ended"), [(401, "failed"), (404, "failed"), (429, "waiting"), (503, "waiting")]
)
def test_a_refusal_ends_a_delivery_and_an_outage_leaves_it_waiting(
    world: World, server: ChatServer, ntfy: str, status: int, ended: str
) -> None:
    confirm(add_chat(world.member("approver"), ntfy))
    server.status = status
    tell_card(world)
    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.problem) == (ended, f"ntfy responded with {status}")


@feature(
    "The gate",
    "An address of a chat service appears in no log, page, error or audit entry",
    "agents/deliveries/channels/chat.py",
)
def test_an_address_does_not_appear_on_pages_or_in_logs_audit_entries_or_deliveries(
    world: World, server: ChatServer, ntfy: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    dictConfig({"version": 1, "disable_existing_loggers": False})  # enables the logs of libraries
    confirm(add_chat(world.member("approver"), ntfy))
    server.status = 503
    tell_card(world)
    server.close()
    Delivery.objects.update(due_at=Now())
    send_next(ChannelKind.CHAT)
    page = world.client("approver").get("/notices/").content.decode()
    assert "ntfy" in page
    told = [
        page,
        caplog.text,
        str(list(AuditEntry.objects.values())),
        str(list(Delivery.objects.values())),
    ]
    told.append(str(list(Channel.objects.values("label", "problem", "fingerprint"))))
    assert TOKEN not in " ".join(told)
    assert "alerts" not in " ".join(told)


def test_a_refused_address_is_not_shown_again(world: World) -> None:
    page = world.client("approver").post("/notices/channels/", {"chat": f"nope://{TOKEN}"})
    assert "not an address of a supported chat service" in page.content.decode()
    assert TOKEN not in page.content.decode()


def test_the_requests_library_can_send_only_notifications(server: ChatServer) -> None:
    assert chat.SERVICES
    with pytest.raises(requests.ConnectionError, match="nothing is sent except notifications"):
        requests.post(f"http://127.0.0.1:{server.port}/", json={}, timeout=5)
    assert not server.bodies
