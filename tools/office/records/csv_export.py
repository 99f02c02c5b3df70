"""Export of records as CSV, in parts, so that a file of any length needs little memory."""

import csv
import io
import json
from collections.abc import Iterable
from datetime import datetime

from django.db.models import QuerySet

from tools.contract.spreadsheets import BYTE_ORDER_MARK, guard_cell
from tools.office.records.csv_import import COLUMNS, ONLY_EXPORTED
from tools.office.records.models import Record
from tools.office.records.queries import format_time

ROWS_PER_PART = 500
IDENTITY, *REST = ONLY_EXPORTED
HEADER = (IDENTITY, *COLUMNS, *REST)
FIELDS = tuple({"changed": "updated_at"}.get(name, name) for name in HEADER)


def format_header() -> str:
    """Format the header line; importable columns have the names that the import expects."""
    return BYTE_ORDER_MARK + _format_lines([HEADER])


def format_rows_after(records: QuerySet[Record], last_id: int) -> tuple[str, int]:
    """Return the next records as CSV lines, with the last record's id; an empty text if there are
    none.

    Records are ordered by id, not as in the list, so that a change during the export does not move
    a record past the cursor.
    """
    rows = list(records.filter(pk__gt=last_id).order_by("pk").values_list(*FIELDS)[:ROWS_PER_PART])
    return (
        (
            _format_lines([guard_cell(_format_value(value)) for value in row] for row in rows),
            rows[-1][0],
        )
        if rows
        else ("", last_id)
    )


def _format_value(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False) if value else ""
    if isinstance(value, datetime):
        return format_time(value) or ""
    return "" if value is None else str(value)


def _format_lines(lines: Iterable[Iterable[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(lines)
    return text.getvalue()
