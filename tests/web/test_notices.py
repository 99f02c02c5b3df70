"""The pages about notices: channels, preferences, deliveries, and runs that members follow."""

from __future__ import annotations

import pytest
from django.utils import timezone
from pytest_django import Settings

from agents.accounts.notice_facts import NoticeKind
from agents.deliveries.channels.push import SILENT_PUSH_HOSTS
from agents.deliveries.engine import send_next
from agents.deliveries.models import DeliveryStatus
from agents.notices.choices import load_choices
from agents.notices.models import Channel, ChannelKind, Delivery, FollowedRun
from agents.notices.outbox import add_notice, build_card_notice
from agents.notices.spreading import spread_notices
from agents.runs.models import RunStatus
from tests.features import feature
from tests.notices.conftest import add_address
from tests.world import World, make_world

pytestmark = pytest.mark.django_db

PAGE = "/notices/"
CHOICES = {
    "quiet_from": "22:00",
    "quiet_until": "07:00",
    "digest_at": "09:30",
    "time_zone": "Europe/London",
}


@pytest.fixture
def world(settings: Settings) -> World:
    settings.GADGET_SHOWS_MESSAGES = True
    return make_world()


def read(world: World, who: str = "approver", page: str = PAGE) -> str:
    response = world.client(who).get(page)
    assert response.status_code == 200
    return str(response.content.decode())


def tell_card(world: World) -> None:
    add_notice(build_card_notice(NoticeKind.CARD, world.card()))
    spread_notices()
    send_next(ChannelKind.EMAIL)


class TestNoticesInTheDemo:
    def test_show_what_would_have_been_sent(self, world: World) -> None:
        add_address(world.member("approver"))
        tell_card(world)
        text = read(world)
        assert "This page shows what would have been sent." in text
        assert "A decision is waiting: Update a record, asked by Dana" in text
        assert "Not sent" in text

    def test_show_the_code_that_confirms_an_address(self, world: World) -> None:
        client = world.client("viewer")
        client.post("/notices/channels/", {"email": "ann@example.com"})
        send_next(ChannelKind.EMAIL)
        channel = Channel.objects.get()
        assert channel.code in read(world, "viewer")
        client.post(f"/notices/channels/{channel.pk}/confirm/", {"code": channel.code})
        channel.refresh_from_db()
        assert channel.confirmed_at is not None


class TestNoticesWithAMailServer:
    @pytest.fixture(autouse=True)
    def has_mail(self, settings: Settings) -> None:
        settings.EMAIL_HOST = "mail.example.com"

    def test_hide_codes_on_all_pages(self, world: World) -> None:
        world.client("viewer").post("/notices/channels/", {"email": "ann@example.com"})
        code = Channel.objects.get().code
        pages = (
            ("viewer", PAGE),
            ("viewer", "/notices/messages/"),
            ("admin", "/notices/messages/?all=1"),
        )
        for status in DeliveryStatus:
            if status != DeliveryStatus.SHOWN:
                ended = None if status == DeliveryStatus.WAITING else timezone.now()
                Delivery.objects.update(status=status, ended_at=ended)
                for who, page in pages:
                    text = read(world, who, page)
                    assert "A code to confirm this address" in text
                    assert code not in text

    def test_explain_a_wrong_code(self, world: World) -> None:
        client = world.client("viewer")
        client.post("/notices/channels/", {"email": "ann@example.com"})
        response = client.post(
            f"/notices/channels/{Channel.objects.get().pk}/confirm/", {"code": "1"}
        )
        assert response.status_code == 422
        assert "This is not the code that was sent." in response.content.decode()


def test_a_refused_address_stays_in_the_form(world: World) -> None:
    response = world.client("viewer").post("/notices/channels/", {"email": "<b>ann"})
    assert response.status_code == 422
    assert 'value="&lt;b&gt;ann"' in response.content.decode()


def test_the_page_says_if_a_push_notification_stays_until_the_next_one_arrives(
    world: World,
) -> None:
    add_address(world.member("approver"))
    for host, says_so in (("push.example.com", False), (SILENT_PUSH_HOSTS[0], True)):
        Channel.objects.update(kind=ChannelKind.PUSH, host=host)
        html = world.client("approver").get("/notices/").content.decode()
        assert (
            "its notification stays until the next one arrives or you open Gadget" in html
        ) is says_so


def test_saved_preferences_are_kept(world: World) -> None:
    assert (
        world.client("viewer")
        .post("/notices/choices/", {**CHOICES, "run_failed": "daily"})
        .status_code
        == 302
    )
    choices = load_choices(world.member("viewer"))
    assert choices.paces["run_failed"] == "daily"
    assert (choices.time_zone, f"{choices.quiet_from:%H:%M}") == ("Europe/London", "22:00")
    assert 'value="22:00"' in read(world, "viewer")


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ({"card": "soon"}, "is not one of"),
        ({"quiet_from": ""}, "Enter a start and an end"),
        ({"quiet_from": "10pm"}, "is not a time"),
        ({"quiet_until": "22:00"}, "Start and end are the same."),
        ({"digest_at": ""}, "is not a time"),
        ({"time_zone": "Mars/Base"}, "is not a time zone"),
    ],
)
def test_invalid_preferences_are_refused(world: World, typed: dict[str, str], reason: str) -> None:
    response = world.client("approver").post("/notices/choices/", {**CHOICES, **typed})
    assert response.status_code == 422
    assert reason in response.content.decode()
    assert load_choices(world.member("approver")).pk is None


@feature("The gate", "A failed notification can be sent again", "agents/deliveries/changes.py")
def test_a_failed_notification_can_be_sent_again(world: World) -> None:
    add_address(world.member("approver"))
    tell_card(world)
    Delivery.objects.update(status=DeliveryStatus.FAILED, problem="the mail server responded: 550")
    assert "the mail server responded: 550" in read(world, page="/notices/messages/?failed=1")
    delivery = Delivery.objects.get()
    world.client("approver").post(f"/notices/messages/{delivery.pk}/send/")
    delivery.refresh_from_db()
    assert delivery.status == DeliveryStatus.WAITING


def test_notifications_to_other_people_are_visible_only_to_admins(world: World) -> None:
    add_address(world.member("approver"))
    tell_card(world)
    assert "to approver" in read(world, "admin", "/notices/messages/?all=1")
    assert world.client("operator").get("/notices/messages/?all=1").status_code == 403
    assert "A decision is waiting:" not in read(world, "operator", "/notices/messages/")


def test_notifications_are_listed_page_by_page(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.web.views.pages.PAGE_SIZE", 2)
    add_address(world.member("approver"))
    for _ in range(3):
        tell_card(world)
    first = read(world, page="/notices/messages/")
    assert first.count("A decision is waiting:") == 2
    oldest = Delivery.objects.order_by("pk").values_list("pk", flat=True)[1]
    assert f"?before={oldest}" in first
    assert (
        read(world, page=f"/notices/messages/?before={oldest}").count("A decision is waiting:") == 1
    )


def test_a_run_can_be_followed_and_unfollowed(world: World) -> None:
    run = world.run(RunStatus.WAITING)
    client = world.client("viewer")
    assert "Notify me when it’s done" in read(world, "viewer", f"/runs/{run.pk}/")
    client.post(f"/runs/{run.pk}/follow/")
    assert FollowedRun.objects.get().membership == world.member("viewer")
    assert "We’ll notify you" in read(world, "viewer", f"/runs/{run.pk}/")
    client.post(f"/runs/{run.pk}/follow/", {"stop": ""})
    assert not FollowedRun.objects.exists()


def test_an_ended_run_cannot_be_followed(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED)
    assert world.client("viewer").post(f"/runs/{run.pk}/follow/").status_code == 409
