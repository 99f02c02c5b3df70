"""Conditions on params: when they are met or violated, and the gate's verdict."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.features import feature
from tests.tools.toolbox.sample_tools import Echo
from tools.contract import ErrorCode, Level
from tools.toolbox import Condition, Grants, Otherwise, Permission, Policy, Rule, judge_call
from tools.toolbox.objections import Objection

PARAMS = {
    "region": "EU",
    "score": 60,
    "changes": {"status": "inactive", "score": None},
    "ids": ["a", "bb"],
    "rows": [{"n": 1}, {"n": 5}],
    "none": [],
    "flag": True,
}
HOLD = [
    ("region", Rule.EQUALS, "EU"),
    ("region", Rule.ONE_OF, ["US", "EU"]),
    ("region", Rule.PATTERN, "E[UV]"),
    ("score", Rule.MINIMUM, 60),
    ("score", Rule.MAXIMUM, 60.0),
    ("changes.status", Rule.EQUALS, "inactive"),
    ("ids", Rule.MAX_LENGTH, 2),
    ("region", Rule.MAX_LENGTH, 2),
    ("rows.n", Rule.MAXIMUM, 5),
    ("flag", Rule.EQUALS, True),
    ("changes", Rule.EQUALS, {"score": None, "status": "inactive"}),
]
BREAK = [
    ("region", Rule.EQUALS, "eu", 'region is "EU", but must be "eu"'),
    ("region", Rule.ONE_OF, ["US"], 'region is "EU", but must be one of ["US"]'),
    ("region", Rule.PATTERN, "E", 'region is "EU", but must be like "E"'),
    ("score", Rule.MINIMUM, 61, "score is 60, but must be at least 61"),
    ("score", Rule.MAXIMUM, 59, "score is 60, but must be at most 59"),
    ("ids", Rule.MAX_LENGTH, 1, 'ids is ["a","bb"], but must be at most 1 characters or entries'),
    ("rows.n", Rule.MAXIMUM, 4, "rows.n is 5, but must be at most 4"),
    ("missing", Rule.EQUALS, None, "missing is missing, but must be null"),
    ("changes.score", Rule.MINIMUM, 0, "changes.score is missing, but must be at least 0"),
    (
        "changes.status.deeper",
        Rule.MAX_LENGTH,
        9,
        "changes.status.deeper is missing, but must be at most 9 characters or entries",
    ),
    ("region", Rule.MINIMUM, 0, 'region is "EU", but must be at least 0'),
    ("flag", Rule.EQUALS, 1, "flag is true, but must be 1"),
    ("flag", Rule.MAXIMUM, 2, "flag is true, but must be at most 2"),
    ("score", Rule.PATTERN, "60", 'score is 60, but must be like "60"'),
    ("none.n", Rule.MAXIMUM, 5, "none.n is missing, but must be at most 5"),
]


@pytest.mark.parametrize(("param", "rule", "value"), HOLD)
def test_a_satisfied_condition_reports_nothing(param: str, rule: Rule, value: Any) -> None:
    assert Condition(param, rule, value).find_violation(PARAMS) is None


@pytest.mark.parametrize(("param", "rule", "value", "reason"), BREAK)
def test_a_violated_condition_says_why(param: str, rule: Rule, value: Any, reason: str) -> None:
    assert Condition(param, rule, value).find_violation(PARAMS) == Objection(reason)


def test_a_value_too_long_for_a_pattern_is_shortened_and_not_searched() -> None:
    violation = Condition("text", Rule.PATTERN, ".*").find_violation({"text": "x" * 5_000})
    assert violation is not None
    assert violation.why.startswith('text is "xxx')
    assert len(violation.why) < 200


@pytest.mark.parametrize(
    ("kept", "why"),
    [
        (
            {"param": "a", "rule": "like", "value": 1, "otherwise": "ask"},
            "'like' is not a valid Rule",
        ),
        (
            {"param": "a", "rule": "equals", "value": 1, "otherwise": "allow"},
            "'allow' is not a valid Otherwise",
        ),
        ({"param": "a", "rule": "equals", "otherwise": "ask"}, "needs 'value'"),
        (
            {"param": " ", "rule": "equals", "value": 1, "otherwise": "ask"},
            "is not the name of a parameter",
        ),
        (
            {"param": "a.", "rule": "equals", "value": 1, "otherwise": "ask"},
            "is not the name of a parameter",
        ),
        ({"param": "a", "rule": "one_of", "value": [], "otherwise": "ask"}, "at least one value"),
        ({"param": "a", "rule": "minimum", "value": "1", "otherwise": "ask"}, "is not a number"),
        (
            {"param": "a", "rule": "max_length", "value": -1, "otherwise": "ask"},
            "not a whole number",
        ),
        (
            {"param": "a", "rule": "max_length", "value": True, "otherwise": "ask"},
            "not a whole number",
        ),
        (
            {"param": "a", "rule": "pattern", "value": "(", "otherwise": "ask"},
            "is not a valid RE2 regular expression",
        ),
        (
            {"param": "a", "rule": "pattern", "value": r"(a)\1", "otherwise": "ask"},
            "not a valid RE2 regular expression",
        ),
        (
            {"param": "a", "rule": "equals", "value": float("nan"), "otherwise": "ask"},
            "Out of range float",
        ),
        (
            {"param": "a", "rule": "one_of", "value": ["\0"], "otherwise": "ask"},
            "a text contains a NUL character",
        ),
    ],
)
def test_an_invalid_condition_is_refused(kept: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why.replace("(", r"\(")):
        Condition.from_json(kept)


def test_a_hostile_pattern_does_not_block_a_worker() -> None:
    hostile = Condition("text", Rule.PATTERN, "(.*.*.{0,99}.{0,99}.{0,99}a+)+x")
    started = time.perf_counter()
    assert hostile.find_violation({"text": "a" * 2_000})
    assert time.perf_counter() - started < 20


def test_a_parsed_condition_can_be_stored() -> None:
    kept = {"param": "changes.status", "rule": "one_of", "value": ["a"], "otherwise": "forbid"}
    assert Condition.from_json(kept).as_json() == kept


def grants(*conditions: Condition) -> Grants:
    return Grants(frozenset({Echo.name}), conditions={Echo.name: conditions})


AT_MOST_TWICE = Condition("times", Rule.MAXIMUM, 2)
NEVER_LOUD = Condition("style", Rule.EQUALS, "plain", Otherwise.FORBID)


def test_a_read_within_its_conditions_runs_without_approval() -> None:
    assert (
        judge_call(Echo(), {"text": "a"}, grants(AT_MOST_TWICE, NEVER_LOUD), Policy()).permission
        is Permission.AUTO
    )


def test_a_violated_condition_needs_approval_and_the_card_says_why() -> None:
    verdict = judge_call(Echo(), {"text": "a", "times": 3}, grants(AT_MOST_TWICE), Policy())
    assert verdict.permission is Permission.ASK
    assert verdict.reason == "times is 3, but must be at most 2"
    write = judge_call(
        Echo(level=Level.WRITE), {"text": "a", "times": 3}, grants(AT_MOST_TWICE), Policy()
    )
    assert write.reason == "this changes data; times is 3, but must be at most 2"


@feature("The gate", "Conditions on params ask or forbid", "tools/toolbox/conditions.py")
def test_a_condition_that_forbids_takes_precedence_over_a_condition_that_needs_approval() -> None:
    call = {"text": "a", "times": 3, "style": "loud"}
    verdict = judge_call(Echo(), call, grants(AT_MOST_TWICE, NEVER_LOUD), Policy())
    assert verdict.permission is Permission.FORBIDDEN
    assert verdict.error is not None
    assert verdict.error.code is ErrorCode.NOT_PERMITTED
    assert 'style is "loud", but must be "plain"' in verdict.error.message


def test_a_call_of_a_stopped_tool_is_refused_and_the_reason_names_who_stopped_it() -> None:
    stopped = Grants(frozenset({Echo.name}), stopped={Echo.name: "Ann"})
    verdict = judge_call(Echo(), {"text": "a"}, stopped, Policy())
    assert verdict.error is not None
    assert verdict.error.code is ErrorCode.TOOL_DISABLED
    assert verdict.error.message == "The tool 'sample.echo' was stopped by Ann."


RULES = st.builds(
    Condition,
    st.sampled_from(["times", "style", "text", "missing", "text.deeper"]),
    st.sampled_from([rule for rule in Rule if rule is not Rule.PATTERN]),
    st.sampled_from([0, 1, 2.5, "plain", ["plain", "loud"], None, True]),
    st.sampled_from(Otherwise),
)


@given(
    st.lists(RULES, max_size=4),
    st.integers(1, 5),
    st.sampled_from(["plain", "loud"]),
    st.sampled_from(Level),
)
def test_no_condition_makes_a_verdict_more_permissive(
    made: list[Condition], times: int, style: str, level: Level
) -> None:
    conditions = []
    for each in made:
        try:
            conditions.append(Condition.from_json(each.as_json()))
        except ValueError:
            continue
    call = {"text": "a", "times": times, "style": style}
    strictness = [Permission.AUTO, Permission.ASK, Permission.FORBIDDEN]
    free = judge_call(Echo(level=level), call, grants(), Policy())
    bound = judge_call(Echo(level=level), call, grants(*conditions), Policy())
    assert strictness.index(bound.permission) >= strictness.index(free.permission)
    if level.has_side_effects:
        assert bound.permission is not Permission.AUTO
