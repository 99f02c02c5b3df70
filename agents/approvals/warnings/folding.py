"""Decide whether a card folds a part of its content, because it is too long to show at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agents.platform.value_text import format_json_value, is_long

MAX_SENTENCE = 400
FIRST_TARGETS = 5
"""The number of targets shown at the top of a card; further targets are folded."""


def folds_parts(
    sentence: str, targets: Sequence[Mapping[str, Any]], params: Mapping[str, Any]
) -> bool:
    """Return True if a card folds its sentence, its list of targets or one of its values.

    Args:
        params: the values that the card shows if its call affects no known targets.
    """
    if len(sentence) > MAX_SENTENCE or len(targets) > FIRST_TARGETS:
        return True
    values = _list_values(targets) if targets else params.values()
    return any(is_long(format_json_value(value).replace("\r\n", "\n")) for value in values)


def _list_values(targets: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
    """Yield each value that the card shows in a field of its own."""
    for target in targets:
        yield target.get("label")
        for side in ("before", "after"):
            yield from (target.get(side) or {}).values()
