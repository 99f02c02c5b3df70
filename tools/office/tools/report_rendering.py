"""Rendering of a report's sections and tables as one Markdown text."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from tools.contract import ErrorCode, ToolError
from tools.office.records.fields import Body, ListName, RecordFilters, RecordIds, Sparse
from tools.office.records.models import Record
from tools.office.records.queries import build_missing_error, build_row, find_records, get_records
from tools.office.records.tables import build_markdown_table

MAX_SECTIONS = 20
MAX_REPORT_CHARACTERS = 200_000

ReportColumn = Literal[
    "id",
    "name",
    "region",
    "category",
    "status",
    "score",
    "email",
    "domain",
    "phone",
    "qualification",
]


class ReportTable(Sparse):
    """Records as a table inside a section."""

    filters: RecordFilters | None = Field(
        None,
        description="Conditions that select the records; or give record_ids. Without either, all records",
    )
    record_ids: RecordIds | None = Field(
        None, max_length=200, description="Ids of the records, shown in this order"
    )
    columns: Annotated[list[ReportColumn], Field(min_length=1, max_length=10)] = Field(
        ["name", "region", "category", "status", "score"], description="Columns from left to right"
    )
    limit: int = Field(50, ge=1, le=200, description="Maximum number of rows")


class ReportSection(Sparse):
    heading: ListName = Field(description="Heading of the section")
    text: Body | None = Field(None, description="Markdown")
    table: ReportTable | None = Field(
        None, description="A table of records, read when the report is built"
    )


class ReportParams(Sparse):
    title: ListName = Field(description="Title of the report")
    sections: list[ReportSection] = Field(
        min_length=1, max_length=MAX_SECTIONS, description="From top to bottom"
    )


@dataclass(frozen=True)
class Report:
    """A rendered report and the records that it is about."""

    title: str
    body: str
    record_ids: tuple[int, ...]


def render_report(params: ReportParams, organization_id: int) -> Report:
    """Render the report as Markdown, with tables of the current records.

    Raises:
        ToolError: NOT_FOUND for an id without a record, LIMIT_EXCEEDED beyond 200,000 characters.
    """
    parts = [f"# {params.title}"]
    shown: dict[int, None] = {}
    for section in params.sections:
        parts.append(f"## {section.heading}")
        if section.text:
            parts.append(section.text.strip())
        if section.table:
            records, total = _load_rows(section.table, organization_id)
            parts.append(_render_table(section.table, records, total))
            shown.update(dict.fromkeys(record.pk for record in records))
    body = "\n\n".join(parts) + "\n"
    if len(body) > MAX_REPORT_CHARACTERS:
        raise ToolError(
            ErrorCode.LIMIT_EXCEEDED,
            f"The report has {len(body):,} characters; the limit is {MAX_REPORT_CHARACTERS:,}.",
            parameter="sections",
            recovery_hint="Shorten the texts or the tables.",
            attempted=False,
        )
    return Report(params.title, body, tuple(shown))


def _load_rows(table: ReportTable, organization_id: int) -> tuple[list[Record], int]:
    if table.record_ids:
        found = get_records(organization_id).in_bulk(
            [int(record_id) for record_id in table.record_ids]
        )
        if absent := [record_id for record_id in table.record_ids if int(record_id) not in found]:
            raise build_missing_error(absent)
        records = [found[int(record_id)] for record_id in table.record_ids]
        return records[: table.limit], len(records)
    matches = find_records(organization_id, table.filters or RecordFilters())
    records = list(matches.order_by("name", "id")[: table.limit])
    return records, len(records) if len(records) < table.limit else matches.count()


def _render_table(table: ReportTable, records: list[Record], total: int) -> str:
    if not records:
        return "*No records match.*"
    rows: list[dict[str, Any]] = [build_row(record) for record in records]
    text = build_markdown_table(
        table.columns, ([row[column] for column in table.columns] for row in rows)
    )
    return text if len(records) == total else f"{text}\n\n*{len(records)} of {total} records.*"
