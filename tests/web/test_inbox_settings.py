"""Snoozed cards and saved views: each belongs to one member, and other members do not notice it."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from agents.approvals import decisions
from agents.approvals.models import SavedView, Snooze
from agents.approvals.saved_views import MAX_VIEWS
from agents.runs.models import Approval, ApprovalStatus
from tests.features import feature
from tests.world import World, change

pytestmark = pytest.mark.django_db


def list_rows(client: Client, query: str = "") -> list[int]:
    html = client.get(f"/approvals/{query}").content.decode()
    return [int(pk) for pk in re.findall(r'data-row="(\d+)"', html)]


def snooze(client: Client, card: Approval, until: str = "hour") -> int:
    return client.post(f"/approvals/{card.pk}/snooze/", {"until": until}).status_code


class TestASnoozedCard:
    @feature(
        "The inbox", "A snoozed card leaves the list of one person", "agents/approvals/snoozes.py"
    )
    def test_disappears_only_from_this_persons_list(self, world: World) -> None:
        snoozed, other = world.card(), world.card()
        approver, admin = world.client("approver"), world.client("admin")
        assert snooze(approver, snoozed) == 302
        assert list_rows(approver) == [other.pk]
        assert list_rows(approver, "?snoozed=1") == [snoozed.pk]
        assert list_rows(admin) == [snoozed.pk, other.pk]

    def test_keeps_its_warnings_when_opened(self, world: World) -> None:
        card, client = (
            world.card(params=change(world.records[1], "Acrne Corp")),
            world.client("approver"),
        )
        warning = "looks like the record"
        assert warning in client.get("/approvals/", {"card": card.pk}).content.decode()
        snooze(client, card)
        assert list_rows(client) == []
        assert warning in client.get("/approvals/", {"card": card.pk}).content.decode()

    def test_returns_after_its_time(self, world: World) -> None:
        card, client = world.card(), world.client("approver")
        snooze(client, card, "tomorrow")
        Snooze.objects.update(until=timezone.now() - timedelta(seconds=1))
        assert list_rows(client) == [card.pk]

    def test_returns_when_the_person_ends_the_snooze(self, world: World) -> None:
        card, client = world.card(), world.client("approver")
        snooze(client, card)
        client.post(f"/approvals/{card.pk}/snooze/end/")
        assert list_rows(client) == [card.pk]

    @pytest.mark.django_db(transaction=True)
    def test_stays_snoozed_when_it_is_replaced(self, world: World) -> None:
        card, client = world.card(), world.client("approver")
        snooze(client, card)
        params = change(world.records[0], "+1 555 0199")
        decisions.edit(
            world.member("admin"), card.pk, decisions.Decision(digest=card.digest), params
        )
        assert list_rows(client) == []

    @pytest.mark.parametrize("until", ["", "soon", "2020-01-01", "2999-01-01"])
    def test_must_have_a_valid_time(self, world: World, until: str) -> None:
        card, client = world.card(), world.client("approver")
        assert snooze(client, card, until) == 422
        assert list_rows(client) == [card.pk]

    def test_cannot_be_a_decided_card(self, world: World) -> None:
        card = world.card()
        Approval.objects.filter(pk=card.pk).update(status=ApprovalStatus.EXPIRED)
        assert snooze(world.client("approver"), card) == 409

    def test_cannot_be_a_card_of_another_organization(self, world: World) -> None:
        card = world.card()
        assert snooze(world.client("outsider"), card) == 404
        assert not Snooze.objects.exists()


class TestASavedView:
    @feature("The inbox", "Filters are saved under a name", "agents/approvals/saved_views.py")
    def test_is_a_link_only_for_its_member(self, world: World) -> None:
        approver = world.client("approver")
        approver.post(
            "/approvals/views/", {"name": " My   deletions ", "query": "level=destructive&card=5"}
        )
        view = SavedView.objects.get()
        assert (view.name, view.query) == ("My deletions", "level=destructive"), (
            "the shown card is not part of the filter"
        )
        assert (
            'href="?level=destructive">My deletions</a>'
            in approver.get("/approvals/").content.decode()
        )
        assert "My deletions" not in world.client("admin").get("/approvals/").content.decode()

    def test_replaces_a_view_of_the_same_name(self, world: World) -> None:
        client = world.client("approver")
        for level in ("write", "destructive"):
            client.post("/approvals/views/", {"name": "Mine", "query": f"level={level}"})
        assert SavedView.objects.get().query == "level=destructive"

    @pytest.mark.parametrize(
        ("name", "query"), [("", "level=write"), ("x" * 61, "level=write"), ("Mine", "card=5")]
    )
    def test_is_refused_if_its_name_is_invalid_or_it_has_no_filter(
        self, world: World, name: str, query: str
    ) -> None:
        response = world.client("approver").post(
            "/approvals/views/", {"name": name, "query": query}
        )
        assert response.status_code == 422
        assert not SavedView.objects.exists()

    def test_is_refused_if_the_person_has_too_many_views(self, world: World) -> None:
        client = world.client("approver")
        codes = [
            client.post(
                "/approvals/views/", {"name": f"View {number}", "query": "level=write"}
            ).status_code
            for number in range(MAX_VIEWS + 1)
        ]
        assert codes == [302] * MAX_VIEWS + [422]

    def test_can_be_deleted_only_by_its_member(self, world: World) -> None:
        client = world.client("approver")
        client.post("/approvals/views/", {"name": "Mine", "query": "level=write"})
        view = SavedView.objects.get()
        world.client("admin").post(f"/approvals/views/{view.pk}/delete/")
        assert SavedView.objects.exists()
        client.post(f"/approvals/views/{view.pk}/delete/")
        assert not SavedView.objects.exists()
