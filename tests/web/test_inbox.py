"""The inbox: what waits, oldest first, and what was decided, newest first, each with filters and page by page."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote_plus

import pytest
from django.test import Client
from django.utils import timezone

from agents.approvals import decisions
from agents.approvals.models import Approval, ApprovalStatus
from agents.employees.models import Employee
from agents.runs.models import Run
from agents.web.lists import decision_pages
from agents.web.lists.decision_pages import PAGE_SIZE as MAX_DECIDED
from agents.web.views.approvals import MAX_CARDS
from tests.world import DELETE, UPDATE, World, change, make_world

pytestmark = pytest.mark.django_db

HISTORY = {"history": "1"}


@pytest.fixture
def world() -> World:
    return make_world()


def page(client: Client, **query: Any) -> str:
    answer = client.get("/approvals/", query)
    assert answer.status_code == 200
    return answer.content.decode()


def waiting(world: World, **query: Any) -> list[int]:
    """The cards that the inbox shows, from top to bottom."""
    return [int(pk) for pk in re.findall(r'data-inbox-card="(\d+)"', page(world.client("approver"), **query))]


def decided(world: World, **query: Any) -> list[int]:
    """The cards that the history lists, from top to bottom."""
    html = page(world.client("viewer"), **HISTORY, **query)
    return [int(pk) for pk in re.findall(r'</span>\s+<a href="/approvals/(\d+)/">', html)]


def deny(world: World, card: Approval, by: str = "approver", reason: str = "No.") -> Approval:
    return decisions.deny(world.member(by), card.pk, decisions.Decision(digest=card.digest, reason=reason))


def denied_at(world: World, at: datetime, run: Run | None = None) -> Approval:
    card = world.card(run)
    person = world.users["approver"]
    Approval.objects.filter(pk=card.pk).update(status=ApprovalStatus.DENIED, decided_by=person, decided_at=at)
    return card


@pytest.mark.django_db(transaction=True)
def test_siblings_of_one_run_stand_in_call_order(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edited card is the newest, but takes the place of its call; so does the page that follows."""
    run = world.run()
    first, second, third = (world.card(run) for _ in range(3))
    params = change(world.records[0], "+1 555 0199")
    edited = decisions.edit(world.member("approver"), second.pk, decisions.Decision(digest=second.digest), params)
    assert waiting(world) == [first.pk, edited.pk, third.pk]
    monkeypatch.setattr("agents.web.views.approvals.MAX_CARDS", 1)
    assert waiting(world, after=first.pk) == [edited.pk]
    assert waiting(world, after=edited.pk) == [third.pk]
    assert f"after={edited.pk}" in page(world.client("approver"), after=first.pk)


def test_nobody_learns_from_the_next_page_which_cards_another_organization_has(world: World) -> None:
    theirs, ours = world.card(), world.card()
    assert waiting(world, after=theirs.pk) == [ours.pk]
    Approval.objects.filter(pk=theirs.pk).update(organization=world.globex)
    assert waiting(world, after=theirs.pk) == waiting(world, after=ours.pk + 1) == []


def of_somebody_else(world: World) -> Approval:
    """A card of another employee of the same organization."""
    card = world.card()
    other = Employee.objects.create(
        organization=world.acme, name=f"Employee {card.pk}", provider=world.employee.provider
    )
    Run.objects.filter(pk=card.run_id).update(employee=other)
    return Approval.objects.get(pk=card.pk)


class TestWaiting:
    def test_the_oldest_stands_first(self, world: World) -> None:
        cards = [world.card(), world.destructive_card(), world.card()]
        assert waiting(world) == [card.pk for card in cards]

    def test_it_filters_by_tool_level_and_employee(self, world: World) -> None:
        write, destructive, other = world.card(), world.destructive_card(), of_somebody_else(world)
        assert waiting(world, tool=UPDATE) == [write.pk, other.pk]
        assert waiting(world, tool=DELETE) == [destructive.pk]
        assert waiting(world, level="destructive") == [destructive.pk]
        assert waiting(world, employee=world.employee.pk) == [write.pk, destructive.pk]
        assert waiting(world, employee=world.employee.pk, level="write") == [write.pk]

    def test_what_no_filter_can_be_is_no_filter(self, world: World) -> None:
        card = world.card()
        assert waiting(world, employee="x", level="all", after="-1") == [card.pk]
        assert waiting(world, tool="\0") == [card.pk]

    def test_it_goes_on_after_the_last_card_of_a_page(self, world: World) -> None:
        run = world.run()
        cards = [world.card(run).pk for _ in range(MAX_CARDS + 2)]
        html = page(world.client("approver"), level="write")
        (following,) = re.findall(r'href="\?([^"]*)" rel="next"', html)
        query = dict(part.split("=") for part in following.replace("&amp;", "&").split("&"))
        assert query == {"level": "write", "after": str(cards[MAX_CARDS - 1])}
        assert waiting(world, **query) == cards[MAX_CARDS:]

    def test_nothing_waits_is_told_apart_from_nothing_fits(self, world: World) -> None:
        client = world.client("approver")
        assert "all caught up." in page(client)
        assert "No waiting card matches." in page(client, level="draft")

    def test_its_queries_do_not_grow_with_the_cards(self, world: World, django_assert_max_num_queries: Any) -> None:
        for _ in range(6):
            of_somebody_else(world)
            world.destructive_card()
        client = world.client("approver")
        page(client)
        with django_assert_max_num_queries(11):
            page(client)


class TestHistory:
    def test_it_says_who_decided_and_why_the_newest_first(self, world: World) -> None:
        first, second = deny(world, world.card()), deny(world, world.card(), "admin", "Not <this> one.")
        assert decided(world) == [second.pk, first.pk]
        html = page(world.client("viewer"), **HISTORY)
        assert "by approver" in html
        assert "by admin" in html
        assert "Not &lt;this&gt; one." in html

    def test_what_waits_is_not_in_it(self, world: World) -> None:
        world.card()
        assert decided(world) == []
        assert "No decisions yet." in page(world.client("viewer"), **HISTORY)

    def test_it_filters_by_outcome_person_employee_and_tool(self, world: World) -> None:
        denied, by_admin = deny(world, world.card()), deny(world, of_somebody_else(world), "admin")
        card = world.destructive_card()
        decision = decisions.Decision(digest=card.digest, confirm="Acme Corp", grace_s=5)
        approved = decisions.approve(world.member("approver"), card.pk, decision)
        expired = world.card()
        Approval.objects.filter(pk=expired.pk).update(status=ApprovalStatus.EXPIRED)
        assert decided(world, outcome="denied") == [by_admin.pk, denied.pk]
        assert decided(world, outcome="approved") == [approved.pk]
        assert decided(world, outcome="expired") == [expired.pk]
        assert decided(world, by=world.users["admin"].pk) == [by_admin.pk]
        assert decided(world, employee=by_admin.run.employee_id) == [by_admin.pk]
        assert decided(world, tool=DELETE) == [approved.pk]
        assert decided(world, tool=UPDATE, outcome="denied", by=world.users["approver"].pk) == [denied.pk]

    def test_it_filters_by_the_days_of_the_decision(self, world: World) -> None:
        today = timezone.now()
        old, new = denied_at(world, today - timedelta(days=10)), deny(world, world.card())
        day, before = today.date().isoformat(), (today - timedelta(days=1)).date().isoformat()
        assert decided(world, **{"from": before}) == [new.pk]
        assert decided(world, until=before) == [old.pk]
        assert decided(world, **{"from": before, "until": day}) == [new.pk]
        assert decided(world, **{"from": "yesterday", "until": "9999-12-31"}) == [new.pk, old.pk]

    def test_the_last_decision_stands_first_however_old_its_card(self, world: World) -> None:
        old, new = world.card(), world.card()
        deny(world, new)
        deny(world, old)
        assert decided(world) == [old.pk, new.pk]

    def test_it_goes_on_before_the_last_card_of_a_page(self, world: World) -> None:
        run, now = world.run(), timezone.now()
        cards = [denied_at(world, now, run).pk for _ in range(MAX_DECIDED + 3)]
        html = page(world.client("viewer"), **HISTORY)
        (after,) = re.findall(r'href="\?history=1&amp;after=([^"]+)" rel="next"', html)
        denied_at(world, now + timedelta(seconds=1), run)
        assert decided(world, after=unquote_plus(after)) == [cards[2], cards[1], cards[0]]
        assert len(decided(world, after="nonsense")) == MAX_DECIDED

    def test_it_looks_through_so_many_and_says_how_far_it_came(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        by_admin = deny(world, world.card(), "admin")
        for _ in range(4):
            deny(world, world.card())
        monkeypatch.setattr(decision_pages.load_decision_page, "__defaults__", (2,))
        query, found = {**HISTORY, "by": world.users["admin"].pk, "tool": UPDATE}, []
        for _ in range(3):
            html = page(world.client("viewer"), **query)
            found += re.findall(r'</span>\s+<a href="/approvals/(\d+)/">', html)
            for after in re.findall(r'after=([^"&]+)" rel="next"', html):
                assert "No match in the latest" in html
                query["after"] = unquote_plus(after)
        assert found == [str(by_admin.pk)]

    def test_its_queries_do_not_grow_with_the_cards(self, world: World, django_assert_max_num_queries: Any) -> None:
        for _ in range(8):
            deny(world, of_somebody_else(world))
        client = world.client("viewer")
        page(client, **HISTORY)
        with django_assert_max_num_queries(9):
            page(client, **HISTORY)


def test_another_organizations_cards_and_people_are_not_there(world: World) -> None:
    deny(world, world.card(), reason="Of Acme alone")
    world.card()
    outsider = world.client("outsider")
    for html in (page(outsider), page(outsider, **HISTORY), page(outsider, **HISTORY, by=world.users["approver"].pk)):
        assert "Acme" not in html
        assert "approver" not in html
