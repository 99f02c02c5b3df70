"""Suggested standing grants generalize approved calls by the origin of ids, by ranges and by hosts,
but never further than approvals and denials allow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.employees.models import Grant as AllowedTool
from agents.insight import suggestions
from agents.insight.suggestions import Suggestion, find_suggestions
from agents.runs.models import Run
from agents.standing_grants.making import make_grant
from agents.standing_grants.proposals import ProposedGrant
from agents.web.grants.grant_form import make_form, parse_proposal
from tests.features import feature
from tests.standing_grants.conversations import send
from tests.standing_grants.shop_tools import Shop, comes_from, is_approved, typed
from tests.workshop import Workshop, call
from tools.contract import Level, Tool
from tools.contract.lookups import may_bring_values
from tools.toolbox.toolbox import Toolbox

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

CANCEL = "shop.cancel"
FIVE = range(1, 6)


@pytest.fixture
def shop(workshop: Workshop, toolbox: Toolbox, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Build the shop, in which even very fast decisions count."""
    monkeypatch.setattr(suggestions, "SHORTEST_LOOK", timedelta(0))
    return Shop(workshop, toolbox)


def decide(shop: Shop, run: Run, *, is_denied: bool = False) -> Run:
    for card in shop.workshop.cards(run):
        (shop.workshop.deny if is_denied else shop.workshop.approve)(card)
    return shop.workshop.drive(run)


def look_up(shop: Shop, number: int, *, order: str = "", **more: Any) -> Run:
    """Look up an order by the id that a person typed, and cancel it, or another one."""
    found = f"A-{number}"
    read = shop.answer("shop.getOrder", found, {"id": found, "total": 10.5 * number})
    cancelled = call(CANCEL, order=order or found, **more)
    return shop.work(read, cancelled, task=f"Cancel the order {found}")


def approve_each(shop: Shop, several: Iterable[dict[str, Any]], task: str = "Cancel it") -> None:
    """Approve one call of the tool with each of these params."""
    for params in several:
        decide(shop, shop.work(call(CANCEL, **params), task=task))


def find_all(shop: Shop) -> list[Suggestion]:
    return find_suggestions(shop.workshop.approver)


def find_one(shop: Shop) -> Suggestion:
    (found,) = find_all(shop)
    return found


def read_conditions(suggestion: Suggestion, param: str) -> list[tuple[str, Any]]:
    found = [each for each in suggestion.proposal.conditions if each.param == param]
    return [(each.rule.value, each.value) for each in found]


def allow_suggested(shop: Shop, proposal: ProposedGrant) -> None:
    """Make the grant as a person does: through the form."""
    shown = parse_proposal(make_form(proposal))
    assert set(shown.params) == set(proposal.params)
    assert sorted(map(repr, shown.conditions)) == sorted(map(repr, proposal.conditions))
    make_grant(shop.workshop.approver, replace(shown, max_uses=100))


class TestIdsThatDiffer:
    @feature(
        "Figures and metrics",
        "A suggestion says from which tool's results the ids of approved calls came",
        "agents/insight/value_origins.py",
    )
    def test_must_come_from_the_read_that_returned_them_each_time(self, shop: Shop) -> None:
        for number in FIVE:
            decide(shop, look_up(shop, number, amount=10.5 * number))
        found = find_one(shop)
        assert read_conditions(found, "order") == [("typed", {"also": []})]
        (amount,) = read_conditions(found, "amount")
        source = comes_from("amount", "shop.getOrder", "total", typed("id"), only=True)
        assert amount == ("comes_from", source.value)
        assert tuple(found.check) == (5, 5)
        allow_suggested(shop, found.proposal)
        assert is_approved(look_up(shop, 7, amount=73.5))
        assert not is_approved(look_up(shop, 8, amount=85))
        assert not is_approved(look_up(shop, 9, order="B-9", amount=94.5))

    def test_must_come_from_a_result_if_nobody_typed_them(self, shop: Shop) -> None:
        for number in FIVE:
            orders = [{"id": f"A-{number}"}]
            read = shop.answer("shop.getCustomer", f"C-{number}", {"orders": orders})
            cancelled = call(CANCEL, order=f"A-{number}")
            decide(shop, shop.work(read, cancelled, task=f"Cancel the order of C-{number}"))
        found = find_one(shop)
        source = comes_from("order", "shop.getCustomer", "orders.id", typed("name"), only=True)
        assert read_conditions(found, "order") == [("comes_from", source.value)]
        allow_suggested(shop, found.proposal)
        read = shop.answer("shop.getCustomer", "C-9", {"orders": [{"id": "A-9"}]})
        one = shop.work(read, call(CANCEL, order="A-9"), task="Cancel the order of C-9")
        assert is_approved(one)
        untyped = shop.work(read, call(CANCEL, order="A-9"), task="Cancel the newest order")
        assert not is_approved(untyped)

    def test_without_an_origin_do_not_suggest_a_grant(self, shop: Shop) -> None:
        approve_each(shop, ({"order": f"A-{number}"} for number in FIVE))
        assert find_all(shop) == []

    def test_that_repeat_are_listed(self, shop: Shop) -> None:
        approve_each(shop, ({"order": f"A-{number % 2}"} for number in FIVE))
        found = find_one(shop)
        assert read_conditions(found, "order") == [("one_of", ["A-1", "A-0"])]
        assert tuple(found.check) == (5, 5)

    def test_that_are_large_whole_numbers_do_not_suggest_a_range(self, shop: Shop) -> None:
        calls = [{"order": "A-1", "items": [70_000 + 13 * number]} for number in FIVE]
        approve_each(shop, calls)
        assert find_all(shop) == []


class TestNumbers:
    def approve(self, shop: Shop, *amounts: float) -> None:
        approve_each(shop, ({"order": "A-1", "amount": amount} for amount in amounts))

    def deny(self, shop: Shop, amount: float) -> None:
        run = shop.work(call(CANCEL, order="A-1", amount=amount))
        decide(shop, run, is_denied=True)

    def test_become_a_range_that_excludes_the_denied_figure(self, shop: Shop) -> None:
        self.approve(shop, 12.5, 30, 18, 25, 40)
        self.deny(shop, 300)
        self.deny(shop, 90)
        found = find_one(shop)
        assert read_conditions(found, "amount") == [("minimum", 12.5), ("maximum", 40)]
        assert [tuple(each) for each in found.denied] == [("amount", 90)]

    def test_beyond_a_denied_figure_are_left_out(self, shop: Shop) -> None:
        self.approve(shop, 12.5, 30, 18, 25, 20, 60)
        self.deny(shop, 50)
        found = find_one(shop)
        assert read_conditions(found, "amount") == [("minimum", 12.5), ("maximum", 30)]
        assert len(found.cards) == 5

    def test_on_both_sides_of_a_denied_figure_do_not_suggest_a_grant(self, shop: Shop) -> None:
        self.approve(shop, 12.5, 18, 25, 60, 70, 80)
        self.deny(shop, 50)
        assert find_all(shop) == []


class TestFreeTexts:
    @pytest.mark.parametrize(
        "texts",
        [
            ["too late", "wrong color", "not needed", "does not fit", "paid twice"],
            [
                "他说订单已经太晚了",
                "客户要求取消这个订单",
                "颜色完全不对所以取消",
                "已经付款两次请退款",
                "尺寸不合适需要取消",
            ],
        ],
    )
    def test_in_any_script_may_be_free(self, shop: Shop, texts: list[str]) -> None:
        approve_each(shop, ({"order": "A-1", "reason": text} for text in texts))
        assert read_conditions(find_one(shop), "reason") == []

    @pytest.mark.parametrize("names", [["red", "blue", "green", "black", "white"], "abcde"])
    def test_of_one_word_are_not_free(self, shop: Shop, names: list[str]) -> None:
        approve_each(shop, ({"order": "A-1", "reason": name} for name in names))
        assert find_all(shop) == []


class TestValuesFromOutside:
    def reply(self, shop: Shop, number: int, reason: str) -> None:
        mail = {"id": "M-1", "text": f"Please cancel: {reason}"}
        read = shop.answer("shop.readMail", "M-1", mail)
        run = shop.work(read, call(CANCEL, order="A-1", reason=reason), task=f"Task {number}")
        decide(shop, run)

    def test_never_become_free(self, shop: Shop) -> None:
        for number in FIVE:
            self.reply(shop, number, f"the delivery was too late number {'x' * number}y")
        assert find_all(shop) == []

    def test_keep_a_param_from_being_free_and_other_values_do_not(self, shop: Shop) -> None:
        words = ("one", "two", "three", "four", "five")
        approve_each(
            shop, ({"order": "A-1", "reason": f"it was {word} days late"} for word in words)
        )
        found = find_one(shop)
        assert read_conditions(found, "reason") == []
        assert "reason" in found.proposal.params


@pytest.mark.parametrize(("hosts", "many"), [(["acme"], 1), (list("abcde"), 0)])
def test_addresses_are_suggested_only_at_one_host(shop: Shop, hosts: list[str], many: int) -> None:
    AllowedTool.objects.create(employee=shop.workshop.employee, tool="mail.send")
    for number in FIVE:
        host = hosts[number % len(hosts)]
        sent = send(f"person{number}@{host}.example", "Offer", "Here is our offer.")
        decide(shop, shop.work(sent))
    found = find_all(shop)
    assert len(found) == many
    for one in found:
        assert read_conditions(one, "recipient") == [("host", "acme.example")]


def test_the_number_of_queries_is_independent_of_the_number_of_runs(shop: Shop) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert find_one(shop).cards
        return len(queries)

    for number in FIVE:
        decide(shop, look_up(shop, number, amount=10.5 * number))
    few = count()
    for number in range(6, 10):
        decide(shop, look_up(shop, number, amount=10.5 * number))
    decide(shop, look_up(shop, 10, amount=900), is_denied=True)
    assert count() == few


@pytest.mark.parametrize(
    ("changes", "may"),
    [
        ({}, True),
        ({"level": Level.WRITE}, False),
        ({"open_world": True}, False),
        ({"source": Tool.source}, False),
    ],
)
def test_only_closed_world_reads_of_a_connected_source_provide_values(
    shop: Shop, toolbox: Toolbox, changes: dict[str, Any], may: bool
) -> None:
    tool = toolbox.get_tool("shop.getOrder")
    assert tool is not None
    tool.__dict__.update(changes)
    assert may_bring_values(tool) is may
