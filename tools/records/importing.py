"""Records from a CSV file; bad rows are named by their line and left out."""

import csv
import io
import json
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from django.db import transaction
from pydantic import ValidationError

from .fields import RecordFields
from .models import Record, RecordChange
from .queries import records_of

MOST_ROWS = 50_000
LARGEST_FILE = 50_000_000
ROWS_AT_ONCE = 500
COLUMNS = tuple(RecordFields.model_fields)
ONLY_EXPORTED = ("id", "qualification", "qualification_reason", "changed")
"""Columns that an export has and an import passes over, so that an exported file can be imported."""
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 (spreadsheets obey these too)


class ImportRefusedError(Exception):
    """The file as a whole cannot be read; nothing was imported. The text is for the person."""


@dataclass(frozen=True)
class ImportReport:
    """How many records were made, and which lines were not: `bad_rows` are (line, why)."""

    imported: int = 0
    bad_rows: list[tuple[int, str]] = field(default_factory=list)


Row = tuple[int, dict[str, Any]]
BadRow = tuple[int, str]


@dataclass(frozen=True)
class CheckedRows:
    """What a file holds: rows that can become records, and what is wrong with the others, each with its line."""

    good: list[Row]
    bad: list[BadRow]


def import_csv(file: BinaryIO, organization_id: int, actor: str = "CSV import") -> ImportReport:
    """Makes a record of every good row, in one transaction; see `read_csv` and `make_records`."""
    return make_records(read_csv(file), organization_id, actor)


def read_csv(file: BinaryIO) -> CheckedRows:
    """The rows of the file, checked without the database.

    The first row names the columns: `name`, and any of region, category, status, score, email, domain, phone, notes,
    attributes (JSON). Separated by commas or semicolons, in UTF-8.

    Raises:
        ImportRefusedError: not UTF-8, too large, without rows, or a header that is not understood.
    """
    good: list[Row] = []
    bad: list[BadRow] = []
    for line, row in _rows(_text_of(file)):
        if isinstance(row, str):
            bad.append((line, row))
            continue
        try:
            good.append((line, _fields_of(row)))
        except ValueError as error:
            bad.append((line, _why(error)))
    return CheckedRows(good, bad)


def make_records(rows: CheckedRows, organization_id: int, actor: str) -> ImportReport:
    """Makes a record of every good row, in one transaction.

    A row whose name and domain are those of a record that is there already is left out, so that a file may be
    imported twice.

    Raises:
        ImportRefusedError: another import is at work.
    """
    with transaction.atomic():
        _take_turn(organization_id)
        fresh, twins = _without_twins(rows.good, organization_id)
        _create([Record(organization_id=organization_id, **fields) for _, fields in fresh], actor)
    return ImportReport(len(fresh), sorted(rows.bad + twins))


def plain(cell: str) -> str:
    """The cell without the apostrophe that keeps a spreadsheet from taking a text for a formula."""
    text = cell.strip()
    return text[1:] if text.startswith("'") and is_formula(text) else text


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would run the text, or takes it for one of ours that was kept from it."""
    return text.lstrip("' ").startswith(FORMULA_STARTS)


def _take_turn(organization_id: int) -> None:
    """Only one import at a time: two of the same file would not see each other's records.

    SQLite has one writer anyhow.
    """
    organizations = Record._meta.get_field("organization").related_model._default_manager
    mine = organizations.select_for_update(skip_locked=True, no_key=True).filter(pk=organization_id)
    if mine.values_list("pk").first() is None:
        raise ImportRefusedError("Another import into this organisation is at work; try again when it has ended.")


def _without_twins(rows: list[Row], organization_id: int) -> tuple[list[Row], list[BadRow]]:
    """The rows of which there is no record yet, each once, and the others."""
    fresh: list[Row] = []
    twins: list[BadRow] = []
    seen: set[tuple[str, str]] = set()
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = rows[start : start + ROWS_AT_ONCE]
        names = {fields["name"] for _, fields in some}
        seen.update(records_of(organization_id).filter(name__in=names).values_list("name", "domain"))
        for line, fields in some:
            key = (fields["name"], fields.get("domain", ""))
            if key in seen:
                twins.append((line, _twin(fields)))
            else:
                seen.add(key)
                fresh.append((line, fields))
    return fresh, twins


def _twin(fields: dict[str, Any]) -> str:
    about = f"the domain {fields['domain']!r}" if fields.get("domain") else "no domain"
    return f"a record {fields['name']!r} with {about} is there already"


def _text_of(file: BinaryIO) -> str:
    content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ImportRefusedError(f"The file is larger than {LARGEST_FILE // 1_000_000} MB; split it.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ImportRefusedError(f"The file is not UTF-8 (line {line}); save it as “CSV UTF-8”.") from error


def _rows(text: str) -> list[tuple[int, dict[str, str] | str]]:
    """Each row with its first line's number: a dict by column, or what is wrong with it."""
    if not text.strip():
        raise ImportRefusedError("The file is empty.")
    first = text.split("\n", 1)[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=";" if first.count(";") > first.count(",") else ",")
    header = _header(next(reader, []))
    rows: list[tuple[int, dict[str, str] | str]] = []
    line = reader.line_num + 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            rows.append((line, f"not readable as CSV: {error}"))
        else:
            if any(cell.strip() for cell in cells):
                rows.append((line, _by_column(header, cells)))
        if len(rows) > MOST_ROWS:
            raise ImportRefusedError(f"The file has more than {MOST_ROWS:,} rows; split it.")
        line = reader.line_num + 1
    if not rows:
        raise ImportRefusedError("The file names its columns, but there are no rows below them.")
    return rows


def _header(cells: list[str]) -> list[str]:
    header = [cell.strip().lower() for cell in cells]
    known = f"Known columns: {', '.join(COLUMNS)}."
    if "name" not in header:
        raise ImportRefusedError(f"The first line names no column 'name'. {known}")
    if unknown := [cell for cell in header if cell not in COLUMNS + ONLY_EXPORTED]:
        raise ImportRefusedError(f"The first line names an unknown column {unknown[0]!r}. {known}")
    if doubled := [cell for cell in header if header.count(cell) > 1]:
        raise ImportRefusedError(f"The first line names the column {doubled[0]!r} twice.")
    return header


def _by_column(header: list[str], cells: list[str]) -> dict[str, str] | str:
    if len(cells) > len(header):
        return f"{len(cells)} cells, but the first line names {len(header)} columns"
    if len(cells) < len(header):
        return f"only {len(cells)} of {len(header)} cells; empty ones need their commas too"
    return dict(zip(header, cells, strict=True))


def _fields_of(row: dict[str, str]) -> dict[str, Any]:
    given: dict[str, Any] = {column: plain(row[column]) for column in COLUMNS if row.get(column, "").strip()}
    if "status" in given:
        given["status"] = given["status"].lower()
    if "attributes" in given:
        given["attributes"] = _object_of(given["attributes"])
    given.setdefault("name", "")
    return RecordFields.model_validate(given).model_dump(mode="json")


def _object_of(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"attributes: not JSON ({error})") from error


def _why(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return f"{where}: {first['msg']} (given: {repr(first['input'])[:80]})"
    return str(error)


def _create(records: list[Record], actor: str) -> None:
    made = Record.objects.bulk_create(records, batch_size=ROWS_AT_ONCE)
    steps = [RecordChange(record=record, version=1, actor=actor, after={"name": record.name}) for record in made]
    RecordChange.objects.bulk_create(steps, batch_size=ROWS_AT_ONCE)
