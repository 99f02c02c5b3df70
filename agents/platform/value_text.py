"""Format JSON values as text for people, and decide which of these texts a page folds."""

from __future__ import annotations

import json
from typing import Any

MAX_LENGTH = 200
"""The most characters of a value that a page shows completely."""
MAX_LINES = 8


def is_long(text: str) -> bool:
    """Return True if a page folds a value that has this text."""
    return len(text) > MAX_LENGTH or text.count("\n") >= MAX_LINES


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
