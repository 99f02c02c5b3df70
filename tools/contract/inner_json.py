"""Finds JSON in the texts of a call's params, for everything that looks at what a call carries."""

import json
from typing import Any


def json_in(text: str) -> list[Any]:
    """Return the JSON in a text: one object or list, or one value on each line."""
    if not text.lstrip().startswith(("{", "[")):
        return []
    for parts in ([text], text.splitlines()):
        try:
            return [json.loads(part) for part in parts if part.strip()]
        except (ValueError, RecursionError):
            continue
    return []
