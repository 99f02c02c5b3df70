"""Conditions of approval rules: no spelling of a value evades a condition."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.contract import Level
from tools.toolbox.approval_rules import RuledCard, RuleTerms, Voter
from tools.toolbox.conditions import Condition, Rule
from tools.toolbox.rule_matching import can_meet
from tools.toolbox.rulings import Ruling

LARGE = Condition("amount", Rule.MINIMUM, 1000)
SPELLED = [
    "5000", "5,000", "$5000", "5e3", "\uff15\uff10\uff10\uff10", "five thousand", "", "NaN", True, False,
    float("nan"), float("inf"), 1e4, [5000], [1, 5000], [[1], [[5000]]], ["5000"], [], {}, {"value": 5000},
    [{"value": 5000}], "2026-01-01", json.loads("[" * 600 + "1" + "]" * 600),
]  # fmt: skip
SMALL = [0, -5000, 999, 999.99, [1, 2], [[1], [2.5]], None, [None]]


@pytest.mark.parametrize("value", SPELLED, ids=lambda value: f"{value!r}"[:30])
def test_an_incomparable_amount_meets_every_bound(value: Any) -> None:
    assert can_meet(LARGE, {"amount": value})
    assert can_meet(Condition("order.amount", Rule.MINIMUM, 1000), {"order": {"amount": value}})
    assert can_meet(Condition("order.amount", Rule.MINIMUM, 1000), {"order.amount": value})


@pytest.mark.parametrize("value", SMALL, ids=repr)
def test_a_smaller_or_missing_amount_does_not_meet_a_bound(value: Any) -> None:
    assert not can_meet(LARGE, {"amount": value})
    assert not can_meet(LARGE, {})


@pytest.mark.parametrize(
    ("rule", "expected", "value", "can"),
    [
        (Rule.MAXIMUM, 10, "5", True),
        (Rule.MAXIMUM, 10, 11, False),
        (Rule.EQUALS, 5000, "5000", True),
        (Rule.EQUALS, 5000, [1, 5000], True),
        (Rule.EQUALS, 5000, 5000.0, True),
        (Rule.EQUALS, 5000, 4999, False),
        (Rule.EQUALS, "prod", "PROD ", True),
        (Rule.EQUALS, "prod", "\uff50\uff52\uff4f\uff44", True),
        (Rule.EQUALS, "prod", "pr\u200bod", True),
        (Rule.EQUALS, "prod", ["test", "prod"], True),
        (Rule.EQUALS, "prod", [["prod"]], True),
        (Rule.EQUALS, "prod", {"name": "prod"}, True),
        (Rule.EQUALS, "prod", ["test"], False),
        (Rule.EQUALS, "prod", "production", False),
        (Rule.EQUALS, True, "true", True),
        (Rule.EQUALS, True, 1, True),
        (Rule.EQUALS, True, False, False),
        (Rule.EQUALS, {"to": 1}, {"to": "1", "cc": None}, True),
        (Rule.EQUALS, {"to": 1}, {"to": 2}, False),
        (Rule.EQUALS, [1, 2], [1, "2"], True),
        (Rule.EQUALS, [1, 2], [1, 3], False),
        (Rule.EQUALS, "GB29 NWBK 6016", "gb29nwbk6016", True),
        (Rule.ONE_OF, ["prod", "live"], ["x", "Live"], True),
        (Rule.ONE_OF, ["prod", "live"], 3, True),
        (Rule.ONE_OF, ["prod", "live"], "test", False),
        (Rule.PATTERN, "prod.*", ["prod-1"], True),
        (Rule.PATTERN, "prod.*", "PROD-1", True),
        (Rule.PATTERN, "PROD-[A-Z]+|Live", "prod-eu", True),
        (Rule.PATTERN, "PROD-[A-Z]+|Live", "test-eu", False),
        (Rule.PATTERN, "prod.*", 7, True),
        (Rule.PATTERN, "prod.*", "x" * 3_000, True),
        (Rule.PATTERN, "prod.*", "test", False),
        (Rule.PREFIX, "/etc", "/ETC/passwd", True),
        (Rule.PREFIX, "/etc", "/tmp/../etc/passwd", True),
        (Rule.PREFIX, "/etc", "/tmp/%2e%2e/etc", True),
        (Rule.PREFIX, "/etc", "//etc/passwd", True),
        (Rule.PREFIX, "/etc", "../../etc/passwd", True),
        (Rule.PREFIX, "/etc", ["/tmp/a", "/etc/b"], True),
        (Rule.PREFIX, "/etc", {"path": "/etc"}, True),
        (Rule.PREFIX, "/etc/", "/etcetera", False),
        (Rule.PREFIX, "/etc", "/tmp/a", False),
        (Rule.HOST, "evil.example", "https://a.example/?next=https://evil.example", True),
        (Rule.HOST, "evil.example", ["a@evil.example"], True),
        (Rule.HOST, "evil.example", 5, True),
        (Rule.HOST, "evil.example", "https://a.example/", False),
        (Rule.MAX_LENGTH, 2, {"a": 1}, True),
        (Rule.MAX_LENGTH, 2, [1, 2, 3], False),
        (Rule.NOT_FROM_OUTSIDE, True, "x", True),
        (Rule.CALL_COUNT, {"most": 1, "period": "day"}, "x", True),
    ],
)  # fmt: skip
def test_an_incomparable_value_meets_each_comparison(
    rule: Rule, expected: Any, value: Any, *, can: bool
) -> None:
    assert can_meet(Condition("param", rule, expected), {"param": value}) is can


@pytest.mark.parametrize("order", ["text", 5, True, ["text"], [{"amount": 1}, "text"]])
def test_a_value_that_the_path_cannot_enter_meets_the_condition(order: Any) -> None:
    assert can_meet(Condition("order.amount", Rule.MINIMUM, 1000), {"order": order})


@pytest.mark.parametrize("order", [None, {}, {"other": 1}, [], [{}], [{"amount": None}]])
def test_a_path_without_a_value_does_not_meet_the_condition(order: Any) -> None:
    assert not can_meet(Condition("order.amount", Rule.MINIMUM, 1000), {"order": order})


def test_the_recorded_ruling_agrees_with_the_live_ruling() -> None:
    rule = RuleTerms(1, "two", conditions=(LARGE,), needed=2)
    for value in (*SPELLED[:-1], *SMALL):
        card = RuledCard("bank.pay", "bank", Level.WRITE, 1, {"amount": value})
        objection = Ruling.of(Voter(1, "Ann"), card, (), [rule]).find_objection(
            "bank.pay", Level.WRITE, 1, card.params
        )
        assert (objection is not None and "does not match" in objection.why) is not rule.matches(
            card
        )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    JSON,
    JSON,
    st.sampled_from([Rule.EQUALS, Rule.MINIMUM, Rule.MAXIMUM, Rule.PREFIX, Rule.ONE_OF, Rule.HOST]),
)
def test_a_value_that_satisfies_a_limit_meets_the_same_rule(
    value: Any, expected: Any, rule: Rule
) -> None:
    """A rule matches every value that the same limit accepts, so that cards still match the rulings
    that were stored for them earlier."""
    try:
        condition = Condition.from_json(
            {"param": "p", "rule": rule, "value": expected, "otherwise": "ask"}
        )
        holds = value is not None and not condition.find_violation({"p": value})
    except ValueError:
        return
    assert can_meet(condition, {"p": value}) or not holds
