"""Import of records from CSV; bad rows are reported by line and skipped."""

import io
import json
import re
from collections.abc import Sequence
from typing import Any, BinaryIO

from django.db import transaction
from pydantic import ValidationError

from tools.contract.spreadsheets import remove_guard
from tools.office.records.csv_records import CsvRecords, TooManyFaultsError, drop_empty_end
from tools.office.records.fields import RecordFields
from tools.office.records.models import Record, RecordChange
from tools.office.records.queries import get_records
from tools.registries.records import LARGEST_IMPORT, CheckedRows, ImportRefusedError, ImportReport

MAX_ROWS = 50_000
BATCH_SIZE = 500
DELIMITERS = (",", ";", "\t", "|")
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
"""The line in which a spreadsheet states the separator."""
COLUMNS = tuple(RecordFields.model_fields)
ONLY_EXPORTED = ("id", "qualification", "qualification_reason", "changed")
"""Columns that exports contain and imports ignore, so that an exported file can be imported."""


Row = tuple[int, dict[str, Any]]
BadRow = tuple[int, str]


def import_csv(file: BinaryIO, organization_id: int, actor: str = "CSV import") -> ImportReport:
    """Create a record for each good row in one transaction; see `read_csv` and `create_records`."""
    return create_records(read_csv(file), organization_id, actor)


def read_csv(file: BinaryIO) -> CheckedRows:
    """Read and check the rows of the file, without the database.

    The first row names the columns: `name`, and any of region, category, status, score, email,
    domain, phone, notes, attributes (JSON). Cells are separated by commas, semicolons, tabs or
    pipes, and the text is in UTF-8; a line such as `sep=;` may come first.

    Raises:
        ImportRefusedError: the file is not UTF-8, is too large, has no rows, has an unknown header,
            or has too many unclosed quotes.
    """
    good: list[Row] = []
    bad: list[BadRow] = []
    try:
        rows = _read_rows(_decode(file))
    except TooManyFaultsError as error:
        raise ImportRefusedError(str(error)) from None
    for line, row in rows:
        if isinstance(row, str):
            bad.append((line, row))
            continue
        try:
            good.append((line, _check_fields(row)))
        except ValueError as error:
            bad.append((line, _describe_fault(error)))
    return CheckedRows(good, bad)


def create_records(rows: CheckedRows, organization_id: int, actor: str) -> ImportReport:
    """Create a record for every good row, in one transaction.

    A row with the name and domain of an existing record is skipped, so that a file may be imported
    twice.

    Raises:
        ImportRefusedError: another import is running.
    """
    with transaction.atomic():
        _lock_imports(organization_id)
        new_rows, duplicates = _split_duplicates(rows.good, organization_id)
        _insert_records(
            [Record(organization_id=organization_id, **fields) for _, fields in new_rows], actor
        )
    return ImportReport(len(new_rows), sorted(rows.bad + duplicates))


def _lock_imports(organization_id: int) -> None:
    """Lock out the organization's other imports, whose new records this import would not see.

    SQLite ignores the lock, but has only one writer anyway.

    Raises:
        ImportRefusedError: another import is running.
    """
    organizations = Record._meta.get_field("organization").related_model._default_manager
    mine = organizations.select_for_update(skip_locked=True, no_key=True).filter(pk=organization_id)
    if mine.values_list("pk").first() is None:
        raise ImportRefusedError(
            "Another import into this organization is running. Try again when it has finished."
        )


def _split_duplicates(rows: list[Row], organization_id: int) -> tuple[list[Row], list[BadRow]]:
    """Split the rows into new rows without repeats, and duplicates of existing records or earlier
    rows."""
    new_rows: list[Row] = []
    duplicates: list[BadRow] = []
    seen: set[tuple[str, str]] = set()
    for start in range(0, len(rows), BATCH_SIZE):
        some = rows[start : start + BATCH_SIZE]
        names = {fields["name"] for _, fields in some}
        seen.update(
            get_records(organization_id).filter(name__in=names).values_list("name", "domain")
        )
        for line, fields in some:
            key = (fields["name"], fields.get("domain", ""))
            if key in seen:
                duplicates.append((line, _describe_duplicate(fields)))
            else:
                seen.add(key)
                new_rows.append((line, fields))
    return new_rows, duplicates


def _describe_duplicate(fields: dict[str, Any]) -> str:
    about = f" with the domain {fields['domain']!r}" if fields.get("domain") else ""
    return f'"{fields["name"]}"{about} already exists'


def _decode(file: BinaryIO) -> str:
    content = file.read(LARGEST_IMPORT + 1)
    if len(content) > LARGEST_IMPORT:
        raise ImportRefusedError(
            f"The file is larger than {LARGEST_IMPORT // 1_000_000} MB; split it."
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ImportRefusedError(
            f"The file is not UTF-8 (line {line}); save it as “CSV UTF-8”."
        ) from error


def _read_rows(text: str) -> list[tuple[int, dict[str, str] | str]]:
    """Return each row with the number of its first line: cells by column, or the row's fault."""
    lines = io.StringIO(text, newline="").readlines()
    start = next((at for at, line in enumerate(lines) if line.strip()), None)
    if start is None:
        raise ImportRefusedError("The file is empty.")
    if named := _SEPARATOR_LINE.fullmatch(lines[start].strip(" \r\n")):
        start += 1
    records = CsvRecords(lines, start, named[1] if named else _find_delimiter(lines[start:]))
    header = _check_header(next(iter(records)).cells)
    records.columns = header
    rows: list[tuple[int, dict[str, str] | str]] = []
    for record in records:
        if record.fault or any(cell.strip() for cell in record.cells):
            rows.append((record.line, record.fault or _map_columns(header, record.cells)))
        if len(rows) > MAX_ROWS:
            raise ImportRefusedError(f"The file has more than {MAX_ROWS:,} rows; split it.")
    if not rows:
        raise ImportRefusedError("The file has a header, but no rows below it.")
    return rows


def _find_delimiter(lines: list[str]) -> str:
    """Find the separator that divides the first row into as many known columns as possible."""

    def count_columns(delimiter: str) -> tuple[int, int]:
        cells = next(iter(CsvRecords(lines, 0, delimiter))).cells
        return sum(cell.strip().lower() in COLUMNS for cell in cells), len(cells)

    return max(DELIMITERS, key=count_columns)


def _check_header(cells: Sequence[str]) -> list[str]:
    """Return the columns' names; the name is empty for an empty column, which spreadsheets leave
    behind."""
    header = [cell.strip().lower() for cell in cells]
    known = f"Known columns: {', '.join(COLUMNS)}."
    if "name" not in header:
        raise ImportRefusedError(f"The first line has no column 'name'. {known}")
    if unknown := [cell for cell in header if cell and cell not in COLUMNS + ONLY_EXPORTED]:
        raise ImportRefusedError(f"The first line has an unknown column {unknown[0]!r}. {known}")
    if repeated := [cell for cell in header if cell and header.count(cell) > 1]:
        raise ImportRefusedError(f"The first line has the column {repeated[0]!r} twice.")
    return header


def _map_columns(header: list[str], cells: Sequence[str]) -> dict[str, str] | str:
    if any(cell.strip() for cell in cells[len(header) :]):
        return f"{len(cells)} cells, but the first line has {len(header)} columns"
    if len(cells) < len(drop_empty_end(header)):
        return f"only {len(cells)} of {len(header)} cells; keep the separators of empty cells"
    named = [
        (name, cell) for name, cell in zip(header, cells, strict=False) if name or cell.strip()
    ]
    if stray := [cell for name, cell in named if not name]:
        return f"{stray[0].strip()[:80]!r} is in a column without a name"
    return dict(named)


def _check_fields(row: dict[str, str]) -> dict[str, Any]:
    given: dict[str, Any] = {
        column: remove_guard(row[column]) for column in COLUMNS if row.get(column, "").strip()
    }
    if "status" in given:
        given["status"] = given["status"].lower()
    if "attributes" in given:
        given["attributes"] = _parse_object(given["attributes"])
    given.setdefault("name", "")
    return RecordFields.model_validate(given).model_dump(mode="json")


def _parse_object(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"attributes: not JSON ({error})") from error


def _describe_fault(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
        message = message.replace("String should have", "must have")
        return f"{where}: {message}" + (
            f", not {repr(first['input'])[:80]}" if first["input"] else ""
        )
    return str(error)


def _insert_records(records: list[Record], actor: str) -> None:
    created = Record.objects.bulk_create(records, batch_size=BATCH_SIZE)
    changes = [
        RecordChange(record=record, version=1, actor=actor, after={"name": record.name})
        for record in created
    ]
    RecordChange.objects.bulk_create(changes, batch_size=BATCH_SIZE)
