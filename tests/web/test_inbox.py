"""The inbox: the waiting cards as rows beside the one card that is shown, and pages of decided
cards, the newest first."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote_plus

import pytest
from django.test import Client
from django.utils import timezone

from agents.approvals import decisions
from agents.employees.models import Employee
from agents.runs.models import Approval, ApprovalStatus, Run, ToolCall
from agents.web.lists import decision_pages, inbox_rows
from agents.web.lists.decision_pages import PAGE_SIZE as MAX_DECIDED
from tests.features import feature
from tests.world import DELETE, UPDATE, World, change
from tools.toolbox.provenance import Provenance, SeenIn, Sighting

pytestmark = pytest.mark.django_db

HISTORY = {"history": "1"}
CREATE = "data.createRecord"


def page(client: Client, **query: Any) -> str:
    response = client.get("/approvals/", query)
    assert response.status_code == 200
    return response.content.decode()


def waiting(world: World, **query: Any) -> list[int]:
    """Return the ids of the cards that the inbox lists, from top to bottom."""
    return [
        int(pk) for pk in re.findall(r'data-row="(\d+)"', page(world.client("approver"), **query))
    ]


def shown_cards(html: str) -> list[int]:
    """Return the ids of the cards that are shown in full."""
    return [int(pk) for pk in re.findall(r'<article [^>]*data-card="(\d+)"', html)]


def decided(world: World, **query: Any) -> list[int]:
    """Return the ids of the cards that the history lists, from top to bottom."""
    html = page(world.client("viewer"), **HISTORY, **query)
    return [int(pk) for pk in re.findall(r'</span>\s+<a href="/approvals/(\d+)/">', html)]


def deny(world: World, card: Approval, by: str = "approver", reason: str = "No.") -> Approval:
    return decisions.deny(
        world.member(by), card.pk, decisions.Decision(digest=card.digest, reason=reason)
    )


def denied_at(world: World, at: datetime, run: Run | None = None) -> Approval:
    card = world.card(run)
    person = world.users["approver"]
    Approval.objects.filter(pk=card.pk).update(
        status=ApprovalStatus.DENIED, decided_by=person, decided_at=at
    )
    return card


@pytest.mark.django_db(transaction=True)
def test_cards_of_one_run_are_listed_in_the_order_of_their_calls(world: World) -> None:
    """An edited card is the newest, but keeps the position of its call."""
    run = world.run()
    first, second, third = (world.card(run) for _ in range(3))
    params = change(world.records[0], "+1 555 0199")
    edited = decisions.edit(
        world.member("approver"), second.pk, decisions.Decision(digest=second.digest), params
    )
    assert waiting(world) == [first.pk, edited.pk, third.pk]


def of_somebody_else(world: World) -> Approval:
    """Create a card from another employee of the same organization."""
    card = world.card()
    other = Employee.objects.create(
        organization=world.acme, name=f"Employee {card.pk}", provider=world.employee.provider
    )
    Run.objects.filter(pk=card.run_id).update(employee=other)
    return Approval.objects.get(pk=card.pk)


class TestWaitingCards:
    def test_are_listed_oldest_first(self, world: World) -> None:
        cards = [world.card(), world.destructive_card(), world.card()]
        assert waiting(world) == [card.pk for card in cards]

    def test_can_be_filtered_by_tool_level_and_employee(self, world: World) -> None:
        write, destructive, other = world.card(), world.destructive_card(), of_somebody_else(world)
        assert waiting(world, tool=UPDATE) == [write.pk, other.pk]
        assert waiting(world, tool=DELETE) == [destructive.pk]
        assert waiting(world, level="destructive") == [destructive.pk]
        assert waiting(world, employee=world.employee.pk) == [write.pk, destructive.pk]
        assert waiting(world, employee=world.employee.pk, level="write") == [write.pk]

    def test_ignore_an_unknown_employee_or_order_but_do_not_match_an_unknown_tool_or_level(
        self, world: World
    ) -> None:
        card = world.card()
        assert waiting(world, employee="x", sort="shoe size") == [card.pk]
        assert waiting(world, level="all") == waiting(world, tool="\0") == []

    def test_can_be_searched_by_sentence_employee_tool_and_number(self, world: World) -> None:
        card, other = world.card(), of_somebody_else(world)
        assert waiting(world, q=other.run.employee.name.upper()) == [other.pk]
        assert waiting(world, q=f"#{card.pk}") == [card.pk]
        assert waiting(world, q="acme update") == [card.pk, other.pk]
        assert waiting(world, q="acme nonsense") == []

    def test_are_sorted_in_the_chosen_order(self, world: World) -> None:
        write, destructive, other = world.card(), world.destructive_card(), of_somebody_else(world)
        Approval.objects.filter(pk=other.pk).update(expires_at=timezone.now())
        Employee.objects.filter(pk=other.run.employee_id).update(name="AAA")
        assert waiting(world, sort="asked") == [write.pk, destructive.pk, other.pk]
        assert waiting(world, sort="risk")[0] == destructive.pk
        assert waiting(world, sort="expiry")[0] == other.pk
        assert waiting(world, sort="employee")[0] == other.pk

    def test_are_listed_up_to_a_maximum_number(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(inbox_rows, "MAX_ROWS", 2)
        run = world.run()
        cards = [world.card(run).pk for _ in range(3)]
        assert waiting(world) == cards[:2]
        assert "These are the oldest" in page(world.client("approver"))

    def test_are_listed_beside_one_shown_card(self, world: World) -> None:
        first, second = world.card(), world.card()
        client = world.client("approver")
        assert shown_cards(page(client)) == [first.pk]
        assert shown_cards(page(client, card=second.pk)) == [second.pk]
        assert shown_cards(page(client, card=first.pk + 1000)) == [first.pk]

    def test_can_be_listed_beside_a_requested_decided_card(self, world: World) -> None:
        card = deny(world, world.card())
        html = page(world.client("approver"), card=card.pk)
        assert shown_cards(html) == [card.pk]
        assert waiting(world, card=card.pk) == []

    def test_of_another_organization_are_not_shown(self, world: World) -> None:
        theirs, ours = world.card(), world.card()
        Approval.objects.filter(pk=theirs.pk).update(organization=world.globex)
        assert shown_cards(page(world.client("approver"), card=theirs.pk)) == [ours.pk]

    def test_are_replaced_by_different_texts_if_there_are_none_and_if_none_match(
        self, world: World
    ) -> None:
        client = world.client("approver")
        assert "all caught up." in page(client)
        assert "No matching cards." in page(client, level="draft")

    def test_with_an_unknown_outcome_have_their_own_filter(self, world: World) -> None:
        world.card()
        world.unknown_call()
        assert '?level=unknown&amp;">outcome unknown <span' in page(world.client("approver"))

    def test_need_a_constant_number_of_queries(
        self, world: World, django_assert_max_num_queries: Any
    ) -> None:
        for _ in range(6):
            of_somebody_else(world)
            world.destructive_card()
        client = world.client("approver")
        page(client)
        with django_assert_max_num_queries(22):
            page(client)


class TestGroupsOfCards:
    def test_are_placed_at_their_oldest_card(self, world: World) -> None:
        run = world.run()
        first, other = world.card(run), world.destructive_card()
        more = [world.card(run).pk for _ in range(2)]
        assert waiting(world) == [first.pk, *more, other.pk]
        assert waiting(world, sort="asked") == [first.pk, other.pk, *more]

    @feature(
        "The inbox",
        "Cards of one shape are grouped under a heading with the values they share",
        "agents/web/lists/row_groups.py",
    )
    def test_show_their_number_and_the_shared_values(self, world: World) -> None:
        run = world.run()
        for _ in range(3):
            world.card(run)
        (head,) = re.findall(
            r'<li class="group-head".*?</li>', page(world.client("approver")), re.DOTALL
        )
        assert ">3</span>" in head
        assert "Update a record" in head
        assert "record_id</i>" in head, "all three change the same record"

    def test_show_a_card_with_a_warning_first_and_do_not_let_it_be_selected(
        self, world: World
    ) -> None:
        run = world.run()
        plain = [world.card(run).pk for _ in range(3)]
        marked = world.card(run)
        params = marked.params | {"record_id": f"{marked.params['record_id']}\u200b"}
        Approval.objects.filter(pk=marked.pk).update(params=params, digest="another")
        html = page(world.client("approver"))
        assert [int(pk) for pk in re.findall(r'data-row="(\d+)"', html)] == [marked.pk, *plain]
        assert re.findall(r"Select card (\d+)", html) == [str(pk) for pk in plain]
        assert '<b class="odd">Hidden characters</b>' in html

    def test_flag_a_value_from_outside_and_do_not_let_its_card_be_selected(
        self, world: World
    ) -> None:
        run = world.run()
        cards = [world.card(run) for _ in range(3)]
        seen = Sighting(
            "changes.phone", "changes.phone", "+1 555 0100", SeenIn.OUTSIDE, stands_out=True
        )
        ToolCall.objects.filter(pk=cards[1].tool_call_id).update(
            provenance=Provenance((seen,)).as_json()
        )
        html = page(world.client("approver"))
        assert re.findall(r"Select card (\d+)", html) == [str(cards[0].pk), str(cards[2].pk)]
        assert '<b class="odd">From outside</b>' in html

    def test_begin_with_a_card_that_must_be_opened_and_do_not_let_it_be_selected(
        self, world: World
    ) -> None:
        run = world.run()
        notes = ["short", "also short", "x" * 201]
        cards = [
            world.card(run, CREATE, {"name": f"C{n}", "notes": text})
            for n, text in enumerate(notes)
        ]
        html = page(world.client("approver"))
        assert [int(pk) for pk in re.findall(r'data-row="(\d+)"', html)] == [
            cards[2].pk,
            cards[0].pk,
            cards[1].pk,
        ]
        assert re.findall(r"Select card (\d+)", html) == [str(card.pk) for card in cards[:2]]
        assert html.count("must be opened · ") == 1

    @pytest.mark.parametrize("sort", inbox_rows.SORTS)
    def test_flag_an_odd_card_in_every_order(self, world: World, sort: str) -> None:
        run, domains = world.run(), ["acme.example", "evil.example", "acme.example", "acme.example"]
        cards = [
            world.card(run, CREATE, {"name": f"C{n}", "email": f"c{n}@{d}"})
            for n, d in enumerate(domains)
        ]
        html = page(world.client("approver"), sort=sort)
        assert re.findall(r'data-row="(\d+)"[^>]+data-odd="different domain in “email”"', html) == [
            str(cards[1].pk)
        ]
        assert (
            html.count('<b class="odd">different domain in <bdi class="quoted">“email”</bdi></b>')
            == 1
        )
        assert (html.count('class="row level-write grouped"') == 4) == (sort == "")

    def test_have_at_least_three_cards(self, world: World) -> None:
        for _ in range(2):
            world.card()
        assert "group-head" not in page(world.client("approver"))

    def test_contain_no_destructive_cards(self, world: World) -> None:
        for _ in range(3):
            world.destructive_card()
        assert "group-head" not in page(world.client("approver"))


class TestDecidedCards:
    def test_show_who_decided_and_why_with_the_newest_first(self, world: World) -> None:
        first, second = (
            deny(world, world.card()),
            deny(world, world.card(), "admin", "Not <this> one."),
        )
        assert decided(world) == [second.pk, first.pk]
        html = page(world.client("viewer"), **HISTORY)
        assert "by approver" in html
        assert "by admin" in html
        assert "Not &lt;this&gt; one." in html

    def test_do_not_include_waiting_cards(self, world: World) -> None:
        world.card()
        assert decided(world) == []
        assert "No decisions yet." in page(world.client("viewer"), **HISTORY)

    def test_can_be_filtered_by_outcome_person_employee_and_tool(self, world: World) -> None:
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
        assert decided(world, tool=UPDATE, outcome="denied", by=world.users["approver"].pk) == [
            denied.pk
        ]

    def test_can_be_filtered_by_the_date_of_the_decision(self, world: World) -> None:
        today = timezone.now()
        old, new = denied_at(world, today - timedelta(days=10)), deny(world, world.card())
        day, before = today.date().isoformat(), (today - timedelta(days=1)).date().isoformat()
        assert decided(world, **{"from": before}) == [new.pk]
        assert decided(world, until=before) == [old.pk]
        assert decided(world, **{"from": before, "until": day}) == [new.pk]
        assert decided(world, **{"from": "yesterday", "until": "9999-12-31"}) == [new.pk, old.pk]

    def test_are_ordered_by_decision_and_not_by_request(self, world: World) -> None:
        old, new = world.card(), world.card()
        deny(world, new)
        deny(world, old)
        assert decided(world) == [old.pk, new.pk]

    def test_continue_before_the_last_card_of_a_page(self, world: World) -> None:
        run, now = world.run(), timezone.now()
        cards = [denied_at(world, now, run).pk for _ in range(MAX_DECIDED + 3)]
        html = page(world.client("viewer"), **HISTORY)
        (after,) = re.findall(r'href="\?history=1&amp;after=([^"]+)" rel="next"', html)
        denied_at(world, now + timedelta(seconds=1), run)
        assert decided(world, after=unquote_plus(after)) == [cards[2], cards[1], cards[0]]
        assert len(decided(world, after="nonsense")) == MAX_DECIDED

    def test_are_searched_up_to_a_limit_that_is_stated(
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
                assert "No match in the latest 10,000." in html
                assert "Searched 10,000 cards, back to <time" in html
                query["after"] = unquote_plus(after)
        assert found == [str(by_admin.pk)]

    def test_need_a_constant_number_of_queries(
        self, world: World, django_assert_max_num_queries: Any
    ) -> None:
        for _ in range(8):
            deny(world, of_somebody_else(world))
        client = world.client("viewer")
        page(client, **HISTORY)
        with django_assert_max_num_queries(9):
            page(client, **HISTORY)


def test_the_inbox_hides_cards_and_people_of_other_organizations(world: World) -> None:
    deny(world, world.card(), reason="Of Acme alone")
    world.card()
    outsider = world.client("outsider")
    for html in (
        page(outsider),
        page(outsider, **HISTORY),
        page(outsider, **HISTORY, by=world.users["approver"].pk),
    ):
        assert "Acme" not in html
        assert "approver" not in html
