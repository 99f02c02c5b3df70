"""Members choose their own deputies for a limited time and only within their organization; each
choice has an audit entry."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from django.utils import timezone

from agents.accounts.models import AuditEntry, Membership
from agents.approval_rules.deputies import MAX_NAMED
from agents.approval_rules.models import Deputy
from tests.features import feature
from tests.world import World

pytestmark = pytest.mark.django_db

PAGE = "/account/deputies/"


def day(ahead: int) -> str:
    return (timezone.now() + timedelta(days=ahead)).date().isoformat()


def name_deputy(world: World, by: str = "approver", **typed: Any) -> HttpResponse:
    form = {"deputy": world.member("admin").pk, "until": day(3), **typed}
    response: HttpResponse = world.client(by).post(PAGE, form)  # type: ignore[assignment]
    return response


@feature(
    "The gate",
    "Members name deputies for a time, and end them",
    "agents/approval_rules/deputies.py",
)
def test_a_deputy_may_decide_from_now_until_the_end_of_the_last_day(world: World) -> None:
    assert name_deputy(world).status_code == 302
    row = Deputy.objects.get()
    assert (row.member, row.deputy) == (world.member("approver"), world.member("admin"))
    assert row.starts_at <= timezone.now()
    assert (row.ends_at.date().isoformat(), row.ends_at.hour) == (day(3), 23)
    entry = AuditEntry.objects.get(action="deputy_added")
    assert (entry.actor, entry.subject) == ("user:approver", f"deputy:{row.pk}")
    assert entry.payload["deputy"] == "admin"
    assert "You are a deputy for" in world.client("admin").get(PAGE).content.decode()


def test_a_deputy_can_start_on_a_future_day(world: World) -> None:
    name_deputy(world, **{"from": day(1)})
    assert Deputy.objects.get().starts_at.date().isoformat() == day(1)


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ({"until": ""}, "Choose the last day."),
        ({"until": "tomorrow"}, "This is not a date."),
        ({"until": "9999-12-31"}, "at most 90 days"),
        ({"until": "2020-01-01"}, "This day is in the past."),
        ({"from": "2100-01-01", "until": "2100-01-02"}, "within the next 90 days"),
        ({"deputy": ""}, "Choose a person."),
        ({"deputy": 10**6}, "another active approver"),
    ],
)
def test_an_invalid_choice_is_refused_and_stays_in_the_form(
    world: World, typed: dict[str, Any], reason: str
) -> None:
    response = name_deputy(world, **typed)
    assert response.status_code == 422
    assert reason in response.content.decode()
    assert not Deputy.objects.exists()
    assert typed.get("until", day(3)) in response.content.decode()


@pytest.mark.parametrize("name", ["approver", "operator", "viewer"])
def test_only_other_approvers_can_be_named(world: World, name: str) -> None:
    assert name_deputy(world, deputy=world.member(name).pk).status_code == 422


def test_nobody_outside_the_organization_can_be_named(world: World) -> None:
    response = name_deputy(world, deputy=Membership.objects.get(user=world.users["outsider"]).pk)
    assert response.status_code == 422


@pytest.mark.parametrize("by", ["operator", "viewer"])
def test_people_who_cannot_decide_cannot_name_a_deputy(world: World, by: str) -> None:
    assert name_deputy(world, by=by).status_code == 403
    assert "Add a deputy" not in world.client(by).get(PAGE).content.decode()


def test_the_number_of_deputies_has_a_limit(world: World) -> None:
    for _ in range(MAX_NAMED):
        assert name_deputy(world).status_code == 302
    response = name_deputy(world)
    assert response.status_code == 409
    assert f"You have {MAX_NAMED} deputies." in response.content.decode()


def test_a_current_deputys_time_ends_immediately_and_a_future_deputy_is_removed(
    world: World,
) -> None:
    name_deputy(world)
    name_deputy(world, **{"from": day(1)})
    now, later = Deputy.objects.order_by("starts_at")
    client = world.client("approver")
    assert client.post(f"{PAGE}{now.pk}/end/").status_code == 302
    assert client.post(f"{PAGE}{later.pk}/end/").status_code == 302
    assert Deputy.objects.get().ends_at <= timezone.now()
    assert client.post(f"{PAGE}{now.pk}/end/").status_code == 404, "its time is over"
    actions = (
        AuditEntry.objects.filter(subject__startswith="deputy:")
        .order_by("seq")
        .values_list("action", flat=True)
    )
    assert list(actions) == ["deputy_added", "deputy_added", "deputy_changed", "deputy_deleted"]


def test_members_can_end_only_their_own_deputies(world: World) -> None:
    name_deputy(world)
    row = Deputy.objects.get()
    assert world.client("admin").post(f"{PAGE}{row.pk}/end/").status_code == 404
    assert Deputy.objects.get().ends_at > timezone.now()
