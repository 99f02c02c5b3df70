"""Limits over history, without a database: their texts, the moments at which they are exceeded, and
a second, slow implementation that reaches the same verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from tools.contract import ErrorCode, Level, Tool, ToolContext, ToolResult
from tools.toolbox import (
    Condition,
    Grants,
    Otherwise,
    Permission,
    Policy,
    Rule,
    Verdict,
    judge_call,
)
from tools.toolbox.conditions import list_exceeded
from tools.toolbox.facts import LiveFacts
from tools.toolbox.history import Period, StoredHistory, ToolHistory
from tools.toolbox.param_values import add_amounts, find_values
from tools.toolbox.permissions import judge_facts

START = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)
LOOK = "bank.look"


class Pay(Tool):
    name = "bank.pay"
    description = "Pays."
    level = Level.READ

    class Params(BaseModel):
        amount: float | int | None = None
        to: str = ""
        parts: list[dict[str, Any]] = []

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return ToolResult.ok()


@dataclass
class Ledger:
    """Earlier calls, as a list of (time, params) pairs; `seen` lists the ids with which the tool
    LOOK was called."""

    now: datetime = START
    started: list[tuple[datetime, dict[str, Any]]] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)

    def count_started(self, tool: str, period: Period) -> int:
        return len(self._within(tool, period))

    def sum_started(self, tool: str, param: str, period: Period) -> Decimal:
        found = (
            value
            for params in self._within(tool, period)
            for value in find_values(params, param.split("."))
        )
        return add_amounts(found)

    def find_unseen(self, tool: str, param: str, values: Sequence[Any]) -> int | None:
        assert (tool, param) == (LOOK, "id")
        return next((number for number, value in enumerate(values) if value not in self.seen), None)

    def has_approved_read(self, tool: str, hosts: frozenset[str]) -> bool:
        raise AssertionError("no call contacts a host")

    def _within(self, tool: str, period: Period) -> list[dict[str, Any]]:
        assert tool == Pay.name
        return [params for time, params in self.started if time > self.now - period.length]


def at_most(most: Any, period: str = "hour", otherwise: Otherwise = Otherwise.ASK) -> Condition:
    return Condition("", Rule.CALL_COUNT, {"most": most, "period": period}, otherwise)


def add_up(
    most: Any, param: str = "amount", period: str = "day", otherwise: Otherwise = Otherwise.ASK
) -> Condition:
    return Condition(param, Rule.SUM, {"most": most, "period": period}, otherwise)


def after(param: str = "to") -> Condition:
    return Condition(param, Rule.ONLY_AFTER, {"tool": LOOK, "param": "id"})


def judge(ledger: Ledger | None, params: dict[str, Any], *conditions: Condition) -> Verdict:
    grants = Grants(frozenset({Pay.name}), conditions={Pay.name: conditions})
    return judge_call(Pay(), params, grants, Policy(), earlier=ledger)


def calls(*ago: float, amount: Any = 1) -> list[tuple[datetime, dict[str, Any]]]:
    """Return one call for each of these numbers, started that many seconds ago."""
    return [(START - timedelta(seconds=seconds), {"amount": amount}) for seconds in ago]


PASSING = "read level: runs without approval; "
TABLE = [
    (at_most(2), calls(1), {}, f"{PASSING}2 of 2 this hour with this call"),
    (at_most(2), calls(1, 3600), {}, f"{PASSING}2 of 2 this hour with this call"),
    (at_most(2), calls(1, 3599), {}, "limit reached, 3 of 2 this hour with this call"),
    (at_most(1000), calls(*range(1099)), {}, "limit reached, 1,100 of 1,000 this hour with this call"),
    (at_most(1, "minute"), calls(59), {}, "limit reached, 2 of 1 this minute with this call"),
    (at_most(1, "minute"), calls(60), {}, f"{PASSING}1 of 1 this minute with this call"),
    (at_most(1, "day"), calls(86_399), {}, "limit reached, 2 of 1 today with this call"),
    (add_up(500), calls(9, 9, amount=200), {"amount": 80}, f"{PASSING}sum of amount 480 of 500 today with this call"),
    (add_up(500), calls(9, amount=500), {"amount": 0}, f"{PASSING}sum of amount 500 of 500 today with this call"),
    (add_up(500), calls(9, amount=500), {"amount": 0.01},
     "limit reached, sum of amount 500.01 of 500 today with this call"),
    (add_up(0.3), calls(9, amount=0.1), {"amount": 0.2}, f"{PASSING}sum of amount 0.3 of 0.3 today with this call"),
    (add_up(9), calls(9, amount=-5), {"amount": 9}, f"{PASSING}sum of amount 9 of 9 today with this call"),
    (add_up(9), calls(9, amount=None), {"amount": 9}, f"{PASSING}sum of amount 9 of 9 today with this call"),
    (add_up(9), calls(9, amount="5"), {"amount": 1}, "an earlier amount today is not a number, so the sum is unknown"),
    (add_up(9), calls(9, amount=True), {"amount": 1}, "an earlier amount today is not a number, so the sum is unknown"),
    (add_up(9), calls(9, amount=[5]), {"amount": 1}, "an earlier amount today is not a number, so the sum is unknown"),
    (add_up(9), calls(86_400, amount="5"), {"amount": 9}, f"{PASSING}sum of amount 9 of 9 today with this call"),
    (add_up(9), [], {"amount": -1}, "amount is -1, but must be a number of 0 or more"),
    (add_up(9), [], {}, "amount is missing, but must be a number of 0 or more"),
    (add_up(9, "to"), [], {"to": "9"}, 'to is "9", but must be a number of 0 or more'),
    (add_up(9, "parts.n"), [], {"parts": [{"n": 4}, {"n": 6}]},
     "limit reached, sum of parts.n 10 of 9 today with this call"),
    (add_up(9, "parts.n"), [], {"parts": []}, "parts.n is missing, but must be a number of 0 or more"),
    (after(), [], {"to": "ann"}, "read level: runs without approval"),
    (after(), [], {"to": "bo"}, 'to is "bo", but bank.look has not succeeded with id "bo" in this run'),
    (after("parts.id"), [], {"parts": [{"id": "ann"}, {"id": "x"}]},
     'parts.id is "x", but bank.look has not succeeded with id "x" in this run'),
    (after("parts.id"), [], {"parts": [{"id": "ann"}, {}]}, "parts.id is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "started", "params", "reason"), TABLE)
def test_the_reason_includes_the_state_of_the_limit(
    condition: Condition,
    started: list[tuple[datetime, dict[str, Any]]],
    params: dict[str, Any],
    reason: str,
) -> None:
    verdict = judge(Ledger(started=started, seen=["ann"]), params, condition)
    assert verdict.reason == reason
    assert verdict.permission is (
        Permission.AUTO if reason.startswith("read level") else Permission.ASK
    )
    assert [cause.text for cause in verdict.causes] == (
        [] if verdict.permission is Permission.AUTO else [reason]
    )


def test_a_card_names_every_limit_over_history_that_the_call_exceeds() -> None:
    ledger = Ledger(started=calls(1, 1))
    verdict = judge(
        ledger,
        {"amount": 5},
        at_most(1),
        at_most(9, "day"),
        add_up(5),
        Condition("to", Rule.EQUALS, "a"),
    )
    assert [cause.text for cause in verdict.causes] == [
        "limit reached, 3 of 1 this hour with this call",
        "limit reached, sum of amount 7 of 5 today with this call",
    ]
    assert verdict.reason.endswith("; 3 of 9 today with this call")


def test_a_forbidding_limit_takes_precedence_and_has_the_code_limit_exceeded() -> None:
    ledger = Ledger(started=calls(1, 1))
    verdict = judge(ledger, {"amount": 5}, at_most(1), add_up(5, otherwise=Otherwise.FORBID))
    assert verdict.error is not None
    assert verdict.error.code is ErrorCode.LIMIT_EXCEEDED
    assert "only within limits: limit reached, sum of amount 7 of 5 today" in verdict.error.message


@pytest.mark.parametrize("condition", [at_most(5), add_up(5), after()])
def test_a_limit_is_violated_if_the_earlier_calls_are_unknown(condition: Condition) -> None:
    verdict = judge(None, {"amount": 1, "to": "ann"}, condition)
    assert (verdict.permission, verdict.reason) == (
        Permission.ASK,
        "the earlier calls are not known here",
    )


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        (at_most(1200, "minute"), "At most 1,200 calls per minute; otherwise a person decides."),
        (add_up(0.5, otherwise=Otherwise.FORBID),
         "The sum of amount must be at most 0.5 per day; otherwise it is refused."),
        (after(), "Only after bank.look with id equal to to in this run; otherwise a person decides."),
        (after("id"), "Only after bank.look with the same id in this run; otherwise a person decides."),
    ],
)  # fmt: skip
def test_a_limit_is_described_as_a_sentence_and_survives_json(
    condition: Condition, sentence: str
) -> None:
    assert condition.describe() == sentence
    assert Condition.from_json(condition.as_json()) == condition


@pytest.mark.parametrize(
    ("param", "rule", "value", "why"),
    [
        ("", "call_count", {"most": 0, "period": "hour"}, "0 is not a whole number from 1"),
        ("", "call_count", {"most": True, "period": "hour"}, "True is not a whole number"),
        ("", "call_count", {"most": 2.5, "period": "hour"}, "2.5 is not a whole number"),
        (
            "",
            "call_count",
            {"most": 1, "period": "year"},
            "'year' is not a period; use one of minute, hour, day",
        ),
        ("", "call_count", {"most": 1}, "give a number and a period"),
        ("", "call_count", 5, "give a number and a period"),
        ("amount", "call_count", {"most": 1, "period": "hour"}, "takes no parameter"),
        ("", "sum", {"most": 1, "period": "hour"}, "'' is not the name of a parameter"),
        ("amount", "sum", {"most": -1, "period": "hour"}, "-1 is not a number of 0 or more"),
        ("amount", "sum", {"most": float("inf"), "period": "hour"}, "Out of range float"),
        ("id", "only_after", {"tool": "a.b"}, "name the tool and its param"),
        ("id", "only_after", {"tool": "", "param": "id"}, "name the tool and its param"),
        ("id", "only_after", {"tool": "a.b", "param": "id."}, "name the tool and its param"),
        ("id", "only_after", {"tool": "a.b", "param": 5}, "name the tool and its param"),
    ],
)
def test_an_invalid_limit_is_refused(param: str, rule: str, value: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Condition.from_json({"param": param, "rule": rule, "value": value, "otherwise": "ask"})


def test_only_limits_that_the_verdict_found_exceeded_are_listed_as_exceeded() -> None:
    verdict = judge(Ledger(started=calls(1, 1)), {"amount": 1}, at_most(1), at_most(5, "day"))
    conditions = [at_most(1), at_most(5, "day"), at_most(2, "minute"), add_up(1)]
    assert list_exceeded(conditions, {"amount": 1}, verdict.facts) == [at_most(1)]
    assert list_exceeded(conditions, {"amount": 1}, {}) == []


# A second, slow implementation of the limits, written only from the sentences that describe them

SECONDS = {"minute": 60, "hour": 3_600, "day": 86_400}
Kind = Literal["count", "sum"]


@dataclass(frozen=True)
class Limit:
    kind: Kind
    most: float
    period: str
    otherwise: Otherwise

    @property
    def condition(self) -> Condition:
        made = at_most if self.kind == "count" else add_up
        return made(self.most, period=self.period, otherwise=self.otherwise)

    def is_exceeded(self, now: float, amount: float, before: list[tuple[float, float]]) -> bool:
        """Return True if the call at `now` exceeds the limit, given the times and amounts of
        earlier calls."""
        recent = [each for time, each in before if now - time < SECONDS[self.period]]
        if self.kind == "count":
            return len(recent) >= self.most
        return sum(map(Fraction, map(repr, [*recent, amount])), Fraction()) > Fraction(
            repr(self.most)
        )


LIMIT = st.one_of(
    st.builds(
        Limit,
        st.just("count"),
        st.integers(1, 4),
        st.sampled_from(list(SECONDS)),
        st.sampled_from(Otherwise),
    ),
    st.builds(
        Limit,
        st.just("sum"),
        st.sampled_from([0, 0.3, 1, 2.5, 7]),
        st.sampled_from(list(SECONDS)),
        st.sampled_from(Otherwise),
    ),
)
LIMITS = st.lists(LIMIT, min_size=1, max_size=3)
REQUESTS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 29, 30, 60, 1800, 3600, 43_200]),
        st.sampled_from([0, 0.1, 0.2, 1, 2.5, 3]),
    ),
    max_size=12,
)


@given(LIMITS, REQUESTS)
def test_the_gate_and_the_slow_implementation_agree_on_every_history(
    limits: list[Limit], requests: list[tuple[float, float]]
) -> None:
    assert_same_verdicts(limits, requests)


def assert_same_verdicts(limits: list[Limit], requests: list[tuple[float, float]]) -> None:
    """Request calls one after the other, each given as a (pause, amount) pair, and check each
    verdict."""
    now, started = 0.0, list[tuple[float, float]]()
    conditions = [limit.condition for limit in limits]
    for pause, amount in requests:
        now += pause
        ledger = Ledger(
            START + timedelta(seconds=now),
            [(START + timedelta(seconds=time), {"amount": before}) for time, before in started],
        )
        verdict = judge(ledger, {"amount": amount}, *conditions)
        exceeded = {limit.otherwise for limit in limits if limit.is_exceeded(now, amount, started)}
        expected = Permission.AUTO if not exceeded else Permission.ASK
        expected = Permission.FORBIDDEN if Otherwise.FORBID in exceeded else expected
        assert verdict.permission is expected
        assert_replayed(verdict, amount, conditions)
        if verdict.permission is Permission.AUTO:
            started.append((now, amount))


@dataclass
class KeptFacts(LiveFacts):
    """Facts with the history that an earlier verdict recorded."""

    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def history(self) -> ToolHistory:
        return StoredHistory(self.kept["history"])


def assert_replayed(verdict: Verdict, amount: float, conditions: list[Condition]) -> None:
    """Check that the verdict follows from its recorded facts, without the ledger."""
    grants = Grants(frozenset({Pay.name}), conditions={Pay.name: tuple(conditions)})
    again = judge_facts(
        Pay(), KeptFacts(Pay(), {"amount": amount}, kept=verdict.facts), grants, Policy()
    )
    assert (again.permission, again.reason, again.causes) == (
        verdict.permission,
        verdict.reason,
        verdict.causes,
    )
