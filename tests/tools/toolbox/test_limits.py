"""Cached results and rate limits, which the executor reaches through its ports."""

from __future__ import annotations

from typing import Any

import pytest

from tests.features import feature
from tests.tools.toolbox.sample_tools import Does, Echo
from tools.contract import ErrorCode, Level, RateLimit, ToolContext, ToolError, ToolResult
from tools.toolbox import Guards, PreparedCall, Toolbox, run_call


class Shelf:
    """A cache that never expires and records the requested lifetimes."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[dict[str, Any], float]] = {}

    def get(self, key: str) -> dict[str, Any] | None:
        return self.kept[key][0] if key in self.kept else None

    def put(self, key: str, result: dict[str, Any], seconds: float) -> None:
        self.kept[key] = (result, seconds)


class Turnstile:
    """A rate limiter that allows as many calls for each key as the limit says, and then asks the
    caller to wait 7.2 s."""

    def __init__(self) -> None:
        self.passed: list[str] = []

    def seconds_to_wait(self, key: str, limit: RateLimit) -> float:
        if self.passed.count(key) >= limit.calls:
            return 7.2
        self.passed.append(key)
        return 0


class Counting(Does):
    """Returns the number of its executions."""

    def __init__(self, **attributes: Any) -> None:
        self.times = 0
        super().__init__(self._again, **attributes)

    def _again(self, context: ToolContext) -> ToolResult:
        self.times += 1
        if self.times == 99:
            raise ToolError(ErrorCode.OPERATION_FAILED, "Enough.")
        return ToolResult.ok({"times": self.times}, f"{self.times} times", "*again*", source="here")


def ran(tool: Any, guards: Guards, organization: int = 1, **params: Any) -> ToolResult:
    return run_call(PreparedCall(0, tool, params, ToolContext(organization), 5.0, guards))


@feature(
    "Execution", "Results are cached across runs, for each organization", "tools/toolbox/limits.py"
)
def test_an_identical_call_gets_the_cached_result_and_says_so() -> None:
    shelf, tool = Shelf(), Counting(cacheable_s=60.0)
    guards = Guards(shelf)
    first, second = ran(tool, guards), ran(tool, guards)
    assert tool.times == 1
    assert (second.data, second.summary, second.markdown) == (
        first.data,
        first.summary,
        first.markdown,
    )
    assert second.metadata == {**first.metadata, "cached": True, "duration_ms": 0}
    assert [seconds for _, seconds in shelf.kept.values()] == [60.0]


def test_other_params_organizations_and_definitions_do_not_share_a_cached_result() -> None:
    guards = Guards(Shelf())
    echo = Echo(cacheable_s=60.0)
    assert ran(echo, guards, text="a").data != ran(echo, guards, text="b").data
    tool = Counting(cacheable_s=60.0)
    assert [ran(tool, guards, organization).data["times"] for organization in (1, 2, 1)] == [
        1,
        2,
        1,
    ]
    other = Counting(cacheable_s=60.0, description="Counts otherwise.")
    assert "cached" not in ran(other, guards).metadata


def test_failures_and_tools_without_caching_are_not_cached() -> None:
    shelf = Shelf()
    failing = Counting(cacheable_s=60.0)
    failing.times = 98
    assert not ran(failing, Guards(shelf)).success
    assert ran(Counting(), Guards(shelf)).success
    assert shelf.kept == {}


def test_a_call_over_the_rate_limit_is_refused_with_the_time_to_retry() -> None:
    tool = Counting(rate_limit=RateLimit(2, 60))
    guards = Guards(limiter=Turnstile())
    results = [
        ran(tool, guards),
        ran(tool, guards),
        ran(tool, guards),
        ran(tool, guards, organization=2),
    ]
    assert [result.success for result in results] == [True, True, False, True]
    assert tool.times == 3
    error = results[2].error
    assert error is not None
    assert (error.code, error.is_definite) == (ErrorCode.RATE_LIMITED, True)
    assert error.text.splitlines() == [
        "TOOL ERROR: RATE_LIMITED",
        "Limit reached for sample.does: 2 calls in 60 s.",
        "RECOVERY HINT: Try again in 8 s.",
    ]


def test_a_cached_result_does_not_count_toward_the_rate_limit() -> None:
    tool = Counting(rate_limit=RateLimit(1, 60), cacheable_s=60.0)
    guards = Guards(Shelf(), Turnstile())
    assert [ran(tool, guards).success for _ in range(3)] == [True] * 3


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ({"cacheable_s": 5.0, "level": Level.WRITE}, "changes something"),
        ({"cacheable_s": 5.0, "volatile": True}, "volatile"),
        ({"rate_limit": RateLimit(1, 1), "transactional": True}, "transactional"),
        ({"rate_limit": RateLimit(0, 1)}, "must be positive"),
    ],
)
def test_contradictory_declarations_cannot_be_registered(
    attributes: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        Toolbox().register(Counting(**attributes))
