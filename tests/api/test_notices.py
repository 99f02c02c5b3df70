"""Notices over REST: members read their own notices, which contain no addresses, and resend the
failed ones."""

from __future__ import annotations

import json

import pytest

from agents.accounts.notice_facts import NoticeKind
from agents.deliveries.models import DeliveryStatus
from agents.notices.models import Channel, Delivery
from tests.features import feature
from tests.notices.conftest import make_failed_delivery
from tests.world import World, post, problem

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]


def test_a_member_reads_their_own_notices(world: World) -> None:
    own, other = (make_failed_delivery(world.member(role)) for role in ("viewer", "admin"))
    (item,) = world.client("viewer").get("/api/notices").json()["items"]
    assert (item["id"], item["kind"], item["status"]) == (str(own.pk), "stopped", "failed")
    assert (item["text"], item["problem"]) == (
        "Work was stopped: Dana",
        "the mail server responded: 550",
    )
    assert str(other.pk) not in {
        each["id"] for each in world.client("viewer").get("/api/notices").json()["items"]
    }


@feature(
    "The gate",
    "REST lists notices without addresses or codes, and sends failed ones again",
    "agents/api/notices.py",
)
def test_addresses_and_codes_are_not_shown(world: World) -> None:
    delivery = make_failed_delivery(world.member("viewer"), NoticeKind.CODE)
    Channel.objects.filter(pk=delivery.channel_id).update(code="47114711")
    delivery.channel.refresh_from_db()
    text = json.dumps(world.client("viewer").get("/api/notices").json(), ensure_ascii=False)
    assert delivery.channel.address not in text
    assert "47114711" not in text
    assert delivery.channel.label in text


def test_notices_can_be_filtered_by_status_and_kind(world: World) -> None:
    make_failed_delivery(world.member("viewer"))
    client = world.client("viewer")
    found = [
        len(client.get(f"/api/notices?{query}").json()["items"])
        for query in ("status=failed", "status=sent", "kind=stopped", "kind=card")
    ]
    assert found == [1, 0, 1, 0]


def test_a_failed_notice_can_be_resent_by_its_member_or_an_admin(world: World) -> None:
    for asker in ("viewer", "admin"):
        delivery = make_failed_delivery(world.member("viewer"))
        response = post(world.client(asker), f"/api/notices/{delivery.pk}/retry")
        assert (response.status_code, response.json()["status"]) == (200, "waiting")
        assert Delivery.objects.get(pk=delivery.pk).status == DeliveryStatus.WAITING
        problem(post(world.client(asker), f"/api/notices/{delivery.pk}/retry"), 409)
        delivery.notice.delete()
        delivery.channel.delete()


def test_nobody_else_can_resend_a_notice(world: World) -> None:
    delivery = make_failed_delivery(world.member("viewer"))
    for asker in ("approver", "outsider"):
        problem(post(world.client(asker), f"/api/notices/{delivery.pk}/retry"), 404)
    assert Delivery.objects.get(pk=delivery.pk).status == DeliveryStatus.FAILED
