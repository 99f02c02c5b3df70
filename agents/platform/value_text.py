"""Format JSON values as text for people, estimate how many rows a text takes on a phone, and decide
which of these texts a page folds."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

MAX_LENGTH = 200
"""The maximum length, in characters, of a value that a page shows completely."""
MAX_LINES = 8
ROW_WIDTH = 30
"""The number of Latin letters that fit on one row of a value on a screen of 360 pixels."""
TAB_WIDTH = 8
_WIDE = ("W", "F")


def is_long(text: str) -> bool:
    """Return True if a page folds a value that has this text."""
    return len(text) > MAX_LENGTH or text.count("\n") >= MAX_LINES


def count_rows(text: str, width: int = ROW_WIDTH) -> int:
    """Count the rows that a text takes if it wraps at this width. Only a word that is longer than
    a row is broken. Letters of East Asian scripts are twice as wide as others."""
    return sum(_count_line_rows(line.expandtabs(TAB_WIDTH), width) for line in text.split("\n"))


def _count_line_rows(line: str, width: int) -> int:
    rows, used = 1, 0
    for word in line.split(" "):
        size = _measure(word)
        if used and used + 1 + size > width:
            rows, used = rows + 1, 0
        elif used:
            used += 1
        used += size
        rows, used = rows + max(0, used - 1) // width, (used - 1) % width + 1 if used else 0
    return rows


def _measure(word: str) -> int:
    if word.isascii():
        return len(word)
    return sum(2 if unicodedata.east_asian_width(char) in _WIDE else 1 for char in word)


def format_json_value(value: Any) -> str:
    """Format a JSON value for people: an empty value as a dash, a simple list with commas, a nested
    value as JSON."""
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
