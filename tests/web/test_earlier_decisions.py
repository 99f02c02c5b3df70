"""A waiting card shows people's earlier decisions about cards of the same shape."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.approvals import decisions
from agents.employees.models import Employee
from agents.runs.models import Approval, Run
from agents.web.cards.cards import load_cards
from agents.web.cards.earlier_decisions import load_earlier_decisions
from tests.features import feature
from tests.web.pages import read_page
from tests.world import World, change

pytestmark = pytest.mark.django_db


def open_card(world: World) -> str:
    return read_page(world.client("approver"), f"/approvals/{world.card().pk}/")


def deny(world: World, card: Approval) -> Approval:
    decision = decisions.Decision(digest=card.digest, reason="The number is <old>.")
    return decisions.deny(world.member("approver"), card.pk, decision)


@feature(
    "The gate",
    "Cards show the newest decisions about cards of the same shape",
    "agents/web/cards/earlier_decisions.py",
)
def test_decisions_on_cards_of_the_same_shape_are_shown_for_every_employee(world: World) -> None:
    assert "Earlier decisions" not in open_card(world)
    same, another_tool = deny(world, world.card()), deny(world, world.destructive_card())
    other_names = {"record_id": str(world.records[0].pk), "changes": {"status": "inactive"}}
    another_shape = deny(world, world.card(params=other_names))
    eve = Employee.objects.create(
        organization=world.acme, name="Eve", provider=world.employee.provider
    )
    eves = deny(world, world.card())
    Run.objects.filter(pk=eves.run_id).update(employee=eve)
    foreign = deny(world, world.card())
    Approval.objects.filter(pk=foreign.pk).update(organization=world.globex)
    html = open_card(world)
    assert "The number is &lt;old&gt;." in html
    assert "for Eve:" in html
    shown = [
        card
        for card in (same, another_tool, another_shape, eves, foreign)
        if f"/approvals/{card.pk}/" in html
    ]
    assert shown == [same, eves]


def test_only_the_newest_five_earlier_decisions_are_shown(world: World) -> None:
    earlier = [deny(world, world.card()) for _ in range(6)]
    found = load_cards([world.card()])[0].earlier_decisions
    assert found == earlier[:0:-1]


def test_earlier_decisions_are_loaded_with_one_query_plus_one_for_each_shape(world: World) -> None:
    counts = []
    fields = ("phone", "status", "region", "notes")
    values = {"phone": "+1", "status": "inactive", "region": "US", "notes": "x"}
    for number in (1, 4):
        made = [{field: values[field] for field in fields[: place + 1]} for place in range(number)]
        params = [{"record_id": str(world.records[0].pk), "changes": changes} for changes in made]
        for each in params:
            deny(world, world.card(params=each))
        waiting = [world.card(params=each) for each in params * 2]
        with CaptureQueriesContext(connection) as seen:
            found = load_earlier_decisions(waiting)
        assert all(found[card.pk] for card in waiting)
        counts.append(len(seen))
    assert counts == [2, 5]


def test_a_denial_is_mentioned_only_on_a_card_of_the_same_request(world: World) -> None:
    deny(world, world.card())
    assert "denied the same request" in open_card(world)
    other = world.card(params=change(world.records[0], "+1 555 0199"))
    assert "denied the same request" not in read_page(
        world.client("approver"), f"/approvals/{other.pk}/"
    )


def test_a_later_approval_of_the_same_request_hides_the_denial(world: World) -> None:
    deny(world, world.card())
    later = world.card()
    decisions.approve(world.member("approver"), later.pk, decisions.Decision(digest=later.digest))
    assert "denied the same request" not in open_card(world)
