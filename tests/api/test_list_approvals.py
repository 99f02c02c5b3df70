"""GET /api/approvals lists the organization's cards with filters, in stable pages and a constant
number of queries."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.api.paging import encode_cursor
from agents.approvals import decisions
from agents.approvals.decisions import Decision
from agents.runs.models import Approval, ToolCall
from tests.world import DELETE, World, change, pages, post, problem
from tools.toolbox.provenance import Provenance, SeenIn, Sighting

pytestmark = pytest.mark.django_db(transaction=True)

FIELDS = {
    "id", "kind", "status", "run_id", "tool", "level", "params", "digest", "sentence", "preview", "why", "from_outside",
    "requested_at", "expires_at", "decided_by", "decided_at", "reason",
}  # fmt: skip


def listed(world: World, **query: Any) -> list[str]:
    response = world.client("viewer").get("/api/approvals", query)
    assert response.status_code == 200, response.content
    return [item["id"] for item in response.json()["items"]]


def test_a_card_has_the_documented_fields(world: World) -> None:
    card = world.card()
    shown = world.client("viewer").get("/api/approvals").json()["items"][0]
    assert shown.keys() >= FIELDS
    assert shown["digest"] == card.digest
    assert shown["run_id"] == str(card.run_id)
    assert shown["employee_id"] == str(world.employee.pk)
    assert shown["preview"]["targets"][0]["label"] == "Acme Corp"
    assert shown["params"]["changes"]["phone"] == "+1 555 0100"
    assert (shown["kind"], shown["status"], shown["level"], shown["confirm"]) == (
        "approval",
        "pending",
        "write",
        "",
    )
    assert shown["requested_at"].endswith("Z")
    assert shown["decided_by"] is None


def test_a_card_lists_its_values_from_outside(world: World) -> None:
    card = world.card()
    path, source = (
        "changes.phone",
        {"tool": "web.fetchPage", "title": "Read", "call_id": 7, "run_id": 3},
    )
    found = Sighting(path, path, "+1 555 0100", SeenIn.OUTSIDE, stands_out=True, **source)  # type: ignore[arg-type]
    known = Provenance((found, Sighting("record_id", "record_id", "1", SeenIn.OWN)))
    ToolCall.objects.filter(pk=card.tool_call_id).update(provenance=known.as_json())
    shown = world.client("viewer").get(f"/api/approvals/{card.pk}").json()["from_outside"]
    where = {"path": "changes.phone", "tool": "web.fetchPage", "call_id": "7", "run_id": "3"}
    assert shown == [{**where, "value": "+1 555 0100", "stands_out": True}]


def test_a_single_card_is_shown_as_in_the_list(world: World) -> None:
    card = world.card()
    client = world.client("viewer")
    assert (
        client.get(f"/api/approvals/{card.pk}").json()
        == client.get("/api/approvals").json()["items"][0]
    )


def test_a_destructive_card_includes_the_text_to_type(world: World) -> None:
    card = world.destructive_card()
    shown = world.client("viewer").get(f"/api/approvals/{card.pk}").json()
    assert (shown["level"], shown["confirm"]) == ("destructive", "Acme Corp")


def test_each_filter_selects_the_matching_cards(world: World) -> None:
    waiting, destructive = world.card(), world.destructive_card()
    denied = world.card()
    post(world.client("approver"), f"/api/approvals/{denied.pk}/deny", {"digest": denied.digest})
    assert listed(world) == [str(card.pk) for card in (denied, destructive, waiting)]
    assert listed(world, status="pending") == [str(waiting.pk), str(destructive.pk)]
    assert listed(world, status="denied") == [str(denied.pk)]
    assert listed(world, tool=DELETE) == [str(destructive.pk)]
    assert listed(world, run_id=waiting.run_id) == [str(waiting.pk)]
    assert len(listed(world, employee_id=world.employee.pk)) == 3
    assert listed(world, employee_id=world.others_employee.pk) == []
    assert listed(world, kind="unknown") == []


def test_pages_contain_each_card_once(world: World) -> None:
    cards = [str(world.card().pk) for _ in range(5)]
    seen = [
        item["id"] for items in pages(world.client("viewer"), "/api/approvals", 2) for item in items
    ]
    assert seen == cards[::-1]


class TestOrderOfCards:
    """Waiting cards come in call order, so that a client that approves them from the top preserves
    that order."""

    @pytest.fixture
    def cards(self, world: World) -> list[str]:
        """Waiting cards in the order of their calls; the second one was edited, so its card is the
        newest."""
        run, other = world.run(), world.run()
        made = [world.card(run), world.card(run), world.card(other), world.card(run)]
        approver, digest = world.member("approver"), made[1].digest
        made[1] = decisions.edit(
            approver, made[1].pk, Decision(digest), change(world.records[0], "+1 555 0199")
        )
        return [str(card.pk) for card in made]

    def test_is_call_order_for_waiting_cards(self, world: World, cards: list[str]) -> None:
        assert max(cards, key=int) == cards[1]
        assert listed(world, status="pending") == cards
        assert listed(world, status="pending", order="oldest") == cards

    def test_is_newest_first_for_all_other_cards_unless_requested(
        self, world: World, cards: list[str]
    ) -> None:
        every = [str(pk) for pk in Approval.objects.order_by("pk").values_list("pk", flat=True)]
        assert listed(world) == listed(world, order="newest") == every[::-1]
        assert listed(world, status="pending", order="newest") == sorted(
            cards, key=int, reverse=True
        )
        replaced = next(pk for pk in every if pk not in cards)
        assert listed(world, order="oldest") == [cards[0], replaced, *cards[1:]]

    @pytest.mark.parametrize(
        "query", ["status=pending", "status=pending&order=newest", "order=oldest", ""]
    )
    def test_is_the_same_across_pages(self, world: World, cards: list[str], query: str) -> None:
        client = world.client("viewer")
        whole = [item["id"] for item in client.get(f"/api/approvals?{query}").json()["items"]]
        assert set(cards) <= set(whole)
        for limit in (1, 2, 3):
            parts = pages(client, "/api/approvals", limit, query)
            assert [item["id"] for items in parts for item in items] == whole

    def test_survives_decisions_between_pages(self, world: World, cards: list[str]) -> None:
        client, seen = world.client("approver"), []
        for items in pages(client, "/api/approvals", 1, "status=pending"):
            for item in items:
                seen.append(item["id"])
                post(client, f"/api/approvals/{item['id']}/approve", {"digest": item["digest"]})
        assert seen == cards

    def test_ends_at_a_cursor_of_another_organization(self, world: World, cards: list[str]) -> None:
        Approval.objects.filter(pk=cards[0]).update(organization=world.globex)
        for unknown in (cards[0], "999999"):
            query = f"status=pending&cursor={encode_cursor(unknown)}"
            assert world.client("viewer").get(f"/api/approvals?{query}").json()["items"] == []
        assert (
            problem(world.client("viewer").get("/api/approvals?order=oldest&cursor=%21"), 422)[
                "field"
            ]
            == "cursor"
        )


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("status=maybe", "status"),
        ("order=sideways", "order"),
        ("kind=x", "kind"),
        ("run_id=x", "run_id"),
        ("employee_id=%00", "employee_id"),
        ("tool=%00", "tool"),
        ("limit=1000", "limit"),
    ],
)
def test_an_invalid_query_is_reported(world: World, query: str, field: str) -> None:
    assert problem(world.client("viewer").get(f"/api/approvals?{query}"), 422)["field"] == field


def test_the_number_of_queries_is_independent_of_the_number_of_cards(world: World) -> None:
    client, counts = world.client("viewer"), []
    for _ in range(2):
        for _ in range(3):
            card = world.card()
            card.status = "superseded"
            card.save()
        with CaptureQueriesContext(connection) as queries:
            client.get("/api/approvals")
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 5
