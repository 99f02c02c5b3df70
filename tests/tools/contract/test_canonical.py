"""Checks of values, so that every value that passes can be stored in every database."""

from __future__ import annotations

from typing import Any

import pytest

from tools.contract.canonical import MAX_DEPTH, storable_json


def nest(levels: int, *, objects: bool) -> Any:
    """Return an empty list or object inside others of the same kind, with this number of levels in
    all."""
    value: Any = {} if objects else []
    for _ in range(levels - 1):
        value = {"a": value} if objects else [value]
    return value


@pytest.mark.parametrize("objects", [True, False])
def test_nested_values_are_limited_in_depth(objects: bool) -> None:
    assert storable_json(nest(MAX_DEPTH, objects=objects))
    for levels in (MAX_DEPTH + 1, 470, 900):
        with pytest.raises(ValueError, match=f"more than {MAX_DEPTH} levels"):
            storable_json(nest(levels, objects=objects))


def test_adjacent_values_do_not_add_to_the_depth() -> None:
    assert storable_json([[{}], "[" * 500, {"a": [[]] * 500}])


def test_a_value_that_contains_itself_is_refused() -> None:
    with pytest.raises((ValueError, RecursionError)):
        storable_json(nest(100_000, objects=False))
