"""GET /api/approvals lists the organisation's cards with filters, in stable pages and a constant number of queries."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.web.world import DELETE, World, make_world, pages, post, problem

pytestmark = pytest.mark.django_db

FIELDS = {
    "id", "kind", "status", "run_id", "tool", "level", "params", "digest", "sentence", "preview", "why",
    "requested_at", "expires_at", "decided_by", "decided_at", "reason",
}  # fmt: skip


@pytest.fixture
def world() -> World:
    return make_world()


def listed(world: World, **query: Any) -> list[str]:
    answer = world.client("viewer").get("/api/approvals", query)
    assert answer.status_code == 200, answer.content
    return [item["id"] for item in answer.json()["items"]]


def test_a_card_has_the_promised_fields(world: World) -> None:
    card = world.card()
    shown = world.client("viewer").get("/api/approvals").json()["items"][0]
    assert shown.keys() >= FIELDS
    assert shown["digest"] == card.digest
    assert shown["run_id"] == str(card.run_id)
    assert shown["employee_id"] == str(world.employee.pk)
    assert shown["preview"]["targets"][0]["label"] == "Acme Corp"
    assert shown["params"]["changes"]["phone"] == "+1 555 0100"
    assert (shown["kind"], shown["status"], shown["level"], shown["confirm"]) == ("approval", "pending", "write", "")
    assert shown["requested_at"].endswith("Z")
    assert shown["decided_by"] is None


def test_one_card_is_shown_as_in_the_list(world: World) -> None:
    card = world.card()
    client = world.client("viewer")
    assert client.get(f"/api/approvals/{card.pk}").json() == client.get("/api/approvals").json()["items"][0]


def test_a_destructive_card_says_what_must_be_typed(world: World) -> None:
    card = world.destructive_card()
    shown = world.client("viewer").get(f"/api/approvals/{card.pk}").json()
    assert (shown["level"], shown["confirm"]) == ("destructive", "Acme Corp")


def test_filters(world: World) -> None:
    waiting, destructive = world.card(), world.destructive_card()
    denied = world.card()
    post(world.client("approver"), f"/api/approvals/{denied.pk}/deny", {"digest": denied.digest})
    assert listed(world) == [str(card.pk) for card in (denied, destructive, waiting)]
    assert listed(world, status="pending") == [str(destructive.pk), str(waiting.pk)]
    assert listed(world, status="denied") == [str(denied.pk)]
    assert listed(world, tool=DELETE) == [str(destructive.pk)]
    assert listed(world, run_id=waiting.run_id) == [str(waiting.pk)]
    assert len(listed(world, employee_id=world.employee.pk)) == 3
    assert listed(world, employee_id=world.others_employee.pk) == []
    assert listed(world, kind="unknown") == []


def test_pages_hold_each_card_once(world: World) -> None:
    cards = [str(world.card().pk) for _ in range(5)]
    seen = [item["id"] for items in pages(world.client("viewer"), "/api/approvals", 2) for item in items]
    assert seen == cards[::-1]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("status=maybe", "status"),
        ("kind=x", "kind"),
        ("run_id=x", "run_id"),
        ("employee_id=%00", "employee_id"),
        ("tool=%00", "tool"),
        ("limit=1000", "limit"),
    ],
)
def test_a_wrong_query_is_named(world: World, query: str, field: str) -> None:
    assert problem(world.client("viewer").get(f"/api/approvals?{query}"), 422)["field"] == field


def test_the_number_of_queries_does_not_grow(world: World) -> None:
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
