"""Parse row ids from URLs and forms, and find the rows with these ids among those that the member
may see."""

import re
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from agents.platform.refusals import NotFound

Row = TypeVar("Row", bound=Model)

LARGEST_ID = 2**63 - 1
"""The largest id that SQLite and PostgreSQL can hold."""


def parse_row_id(value: Any) -> int:
    """Return a row id from its text or number.

    Raises:
        ValueError: the value is not an id, or is too large for a database.
    """
    text = str(value)
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,19}", text) or int(text) > LARGEST_ID:
        raise ValueError(f"{text[:40]!r} is not an id")
    return int(text)


def parse_row_id_or_none(value: Any) -> int | None:
    """Return a row id from its text or number; None if the value is not an id."""
    try:
        return parse_row_id(value)
    except ValueError:
        return None


def get_row(rows: QuerySet[Row], pk: int, noun: str) -> Row:
    """Return the row with this id, if it is among `rows`, which are the rows that the member may
    see.

    Raises:
        NotFound: the row is not among `rows`; the error does not reveal whether it exists
            elsewhere.
    """
    row = rows.filter(pk=pk).first()
    if row is None:
        raise NotFound(f"There is no {noun} {pk}.")
    return row
