"""Conditions of standing grants are judged within a time limit, whatever the results and texts
contain."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from tools.toolbox.conditions import Condition, Rule
from tools.toolbox.grant_conditions import RecordedResult, RecordedWrite, find_broken

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TYPED = Condition("x", Rule.TYPED, {"also": []})
MOST_SECONDS = 4


@dataclass
class Facts:
    results: Sequence[RecordedResult] = ()
    typed: Sequence[str] = ()

    def list_results(self, tool: str) -> Sequence[RecordedResult]:
        return [result for result in self.results if result.tool == tool]

    def list_writes(self) -> Sequence[RecordedWrite]:
        return ()

    def list_typed(self) -> Sequence[str]:
        return self.typed


def find_in(path: str, value: str, *data: Any) -> str:
    """Return why the value does not come from the results; empty if it does."""
    results = [RecordedResult(n, "get", "", 1, NOW, {}, each) for n, each in enumerate(data)]
    source = {"tool": "get", "path": path, "where": []}
    condition = Condition("x", Rule.COMES_FROM, {"sources": [source], "also": []})
    broken = find_broken([condition], {"x": value}, Facts(results))
    return "" if broken is None else broken.why


def test_places_without_the_field_count_toward_the_limit_of_steps() -> None:
    level: dict[str, Any] = {"zz": "B"}
    for width in (40, 40, 40):
        level = {str(number): level for number in range(width)}
    started = time.process_time()
    assert "too many results" in find_in("*.*.*.yy", "A", *([level] * 40))
    assert time.process_time() - started < MOST_SECONDS
    assert not find_in("*.*.*.zz", "B", level)


@pytest.mark.parametrize(
    ("value", "text", "is_typed"),
    [
        ("a" * 20_000, "b" + "a" * 200_000 + "b", False),
        ("a" * 20_000, "b " + "a" * 20_000 + ".", True),
        ("1", "1,1" * 100_000, False),
    ],
)
def test_a_typed_value_is_searched_in_linear_time(value: str, text: str, is_typed: bool) -> None:
    started = time.process_time()
    broken = find_broken([TYPED], {"x": value}, Facts(typed=[text]))
    assert (broken is None) is is_typed
    assert time.process_time() - started < MOST_SECONDS
