"""A value is odd if its domain, host, alphabet or size differs from those of the other values in
its group; values that simply vary are not odd."""

from __future__ import annotations

from typing import Any

import pytest

from agents.approvals.warnings.odd_values import MAX_LISTED, find_oddities


def find_odd(name: str, *values: Any) -> list[Any]:
    """Return the odd values among `values`."""
    found = find_oddities([{name: value} for value in values])
    return [value for value, oddity in zip(values, found, strict=True) if oddity]


@pytest.mark.parametrize(
    ("values", "odd"),
    [
        (
            ("a@acme.example", "b@acme.example", "c@acme.example", "d@acrne.example"),
            ["d@acrne.example"],
        ),
        (
            (
                "https://a.example/1",
                "https://a.example/2",
                "https://a.example/3",
                "https://b.example/4",
            ),
            ["https://b.example/4"],
        ),
        (("Paris", "London", "Rome", "Москва"), ["Москва"]),
        ((10, 12, 11, 9, 5000), [5000]),
        ((1, 1, 1, 1, 1, 900), [900]),
        (
            (["a@x.example"], ["b@x.example"], ["c@x.example"], ["d@x.example", "e@evil.example"]),
            [["d@x.example", "e@evil.example"]],
        ),
        (
            (
                [{"to": "a@x.example"}],
                [{"to": "b@x.example"}],
                [{"to": "c@x.example"}],
                [{"to": "d@y.example"}],
            ),
            [[{"to": "d@y.example"}]],
        ),
        (([10], [12, 11], [9], [10, 5000]), [[10, 5000]]),
    ],
)
def test_one_value_unlike_the_other_values_is_odd(values: tuple[Any, ...], odd: list[Any]) -> None:
    assert find_odd("value", *values) == odd


@pytest.mark.parametrize(
    "values",
    [
        ("a@one.example", "b@two.example", "c@three.example", "d@four.example"),
        ("Paris", "Москва", "東京", "London"),
        (1, 200, 300, 40, 150),
        (10, 12, 5000),
        (True, True, True, False),
        ("x", None, "", 5),
        (
            ["a@x.example", "b@y.example"],
            ["c@x.example", "d@y.example"],
            ["e@x.example", "f@y.example"],
            ["g@x.example"],
        ),
        (["a@x.example"], ["b@y.example"], ["c@z.example"], []),
    ],
)
def test_values_that_simply_vary_are_not_odd(values: tuple[Any, ...]) -> None:
    assert find_odd("value", *values) == []


def test_at_most_three_of_ten_values_are_odd() -> None:
    alike = [f"{name}@acme.example" for name in "abcdefg"]
    others = ["h@evil.example", "i@evil.example", "j@evil.example"]
    assert find_odd("value", *alike, *others) == others
    assert find_odd("value", *alike[1:], *others) == []


def test_values_beyond_the_limit_of_a_long_list_are_not_compared() -> None:
    alike, long = [[f"{name}@acme.example"] for name in "abc"], ["d@acme.example"] * MAX_LISTED
    assert find_odd("value", *alike, [*long[1:], "e@evil.example"]) != []
    assert find_odd("value", *alike, [*long, "e@evil.example"]) == []


def test_the_reason_names_the_param_without_its_path() -> None:
    params = [{"values.email": f"{name}@acme.example"} for name in "abc"] + [
        {"values.email": "d@evil.example"}
    ]
    assert find_oddities(params)[-1] == "different domain in “email”"
