"""The limits beyond which a card folds what it shows, and the cards that fold something."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MAX_LENGTH = 200
"""Characters of a value; a longer one shows its start and its end."""
MAX_LINES = 8
MAX_SENTENCE = 400
FIRST_TARGETS = 5
"""Targets at the top of a card; the others are folded."""


def is_long(text: str) -> bool:
    """Return True if a card folds a value with this text."""
    return len(text) > MAX_LENGTH or text.count("\n") >= MAX_LINES


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
    """List the values with their own fields."""
    for target in targets:
        yield target.get("label")
        for side in ("before", "after"):
            yield from (target.get(side) or {}).values()


def format_json_value(value: Any) -> str:
    """Format a JSON value for people: a dash if empty, commas in simple lists, JSON for nested
    values."""
    if value in (None, "", [], {}):
        return "—"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, (str, int, float)) for item in value):
        return ", ".join(str(item) for item in value)
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False, indent=2)
    return str(value)
