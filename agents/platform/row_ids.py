"""Ids of rows, read from addresses and forms."""

import re
from typing import Any

LARGEST_ID = 2**63 - 1
"""The largest id that both databases can hold."""


def row_id(value: Any) -> int:
    """Return the id of a row from its text or number.

    Raises:
        ValueError: it is not an id, or larger than any database's.
    """
    text = str(value)
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,19}", text) or int(text) > LARGEST_ID:
        raise ValueError(f"{text[:40]!r} is not an id")
    return int(text)


def row_id_or_none(value: Any) -> int | None:
    """Return the id of a row; None for what is not an id."""
    try:
        return row_id(value)
    except ValueError:
        return None
