"""Errors of hostile servers are parsed in limited time."""

from __future__ import annotations

import time

import pytest

from agents.providers.adaptations import find_adaptation

SENT = {"messages": [{"role": "user"}], "temperature": 1, "tools": [{}], "reasoning_effort": "low"}


@pytest.mark.parametrize("words", ["unsupported reasoning_effort ", "nat ", "not a "])
def test_a_long_error_is_searched_in_less_than_a_second(words: str) -> None:
    error = {f"detail_{number}": words * 60 for number in range(2_000)}
    began = time.process_time()
    find_adaptation(400, error, SENT)
    assert time.process_time() - began < 1


def test_an_error_within_a_large_body_is_still_recognized() -> None:
    error = {
        "message": "Unsupported value: 'temperature'",
        **{f"detail_{number}": "x" * 2_000 for number in range(100)},
    }
    found = find_adaptation(400, error, SENT)
    assert found is not None
    assert found.field == "temperature"
