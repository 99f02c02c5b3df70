"""The values at a path in a call's params, and their sum."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Context, Decimal
from typing import Any

ABSENT = object()
"""Stands for a value that is missing or null."""
_EXACT = Context(prec=60)


def find_values(node: Any, path: list[str]) -> Iterator[Any]:
    """Yield every value at the path, and `ABSENT` where there is none."""
    if isinstance(node, list) and path:
        for entry in node or [ABSENT]:
            yield from find_values(entry, path)
    elif not path:
        yield ABSENT if node is None else node
    elif isinstance(node, Mapping) and path[0] in node:
        yield from find_values(node[path[0]], path[1:])
    else:
        yield ABSENT


def is_number(value: Any) -> bool:
    """Return True for a number; True and False are not numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_amount(value: Any) -> bool:
    """Return True for a number of 0 or more; with a negative one, a call could make room in a sum for others."""
    return is_number(value) and value >= 0


def add_amounts(values: Iterable[Any]) -> Decimal:
    """Add up the amounts among the values, without rounding errors; any other value counts as 0."""
    total = Decimal(0)
    for value in values:
        if is_amount(value):
            total = _EXACT.add(total, Decimal(repr(value)))
    return total
