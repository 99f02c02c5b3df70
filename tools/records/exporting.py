"""Records as a CSV file, part by part, so that a file of any length needs the memory of one part."""

import csv
import io
import json
from collections.abc import Iterable
from datetime import datetime

from django.db.models import QuerySet

from .importing import COLUMNS, ONLY_EXPORTED, is_formula
from .models import Record
from .queries import when

ROWS_OF_A_PART = 500
IDENTITY, *REST = ONLY_EXPORTED
HEADER = (IDENTITY, *COLUMNS, *REST)
FIELDS = tuple({"changed": "updated_at"}.get(name, name) for name in HEADER)
BYTE_ORDER_MARK = "\ufeff"
"""Without it, spreadsheets take UTF-8 for something else."""


def first_line() -> str:
    """The names of the columns; those that an import knows are named as it knows them."""
    return BYTE_ORDER_MARK + _written([HEADER])


def part_after(records: QuerySet[Record], last_id: int) -> tuple[str, int]:
    """The next records by their ids, as lines, with the id of the last one; no lines when there is none any more.

    By id and not as the list is sorted: whoever changes records meanwhile moves none of them past the reader.
    """
    rows = list(records.filter(pk__gt=last_id).order_by("pk").values_list(*FIELDS)[:ROWS_OF_A_PART])
    return (_written([guarded(_text(value)) for value in row] for row in rows), rows[-1][0]) if rows else ("", last_id)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False) if value else ""
    if isinstance(value, datetime):
        return when(value) or ""
    return "" if value is None else str(value)


def guarded(text: str) -> str:
    """The text as a cell that no spreadsheet runs; `importing.plain` gives it back."""
    return f"'{text}" if is_formula(text) else text


def _written(lines: Iterable[Iterable[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(lines)
    return text.getvalue()
