"""The parts of a report, and how they become one Markdown text."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from tools.contract import ErrorCode, ToolError
from tools.records.fields import Body, ListName, RecordFilters, RecordIds, Sparse
from tools.records.models import Record
from tools.records.queries import matching, missing, records_of, row_of
from tools.records.tables import markdown_table

MOST_SECTIONS = 20
LONGEST_REPORT = 200_000

Column = Literal["id", "name", "region", "category", "status", "score", "email", "domain", "phone", "qualification"]


class Table(Sparse):
    """Records as a table inside a section."""

    filters: RecordFilters | None = Field(None, description="Which records; or give record_ids; neither: all of them")
    record_ids: RecordIds | None = Field(None, max_length=200, description="Ids of the records, shown in this order")
    columns: Annotated[list[Column], Field(min_length=1, max_length=10)] = Field(
        ["name", "region", "category", "status", "score"], description="Columns from left to right"
    )
    limit: int = Field(50, ge=1, le=200, description="Most rows")


class Section(Sparse):
    heading: ListName = Field(description="Heading of the section")
    text: Body | None = Field(None, description="Markdown")
    table: Table | None = Field(None, description="A table of records, read when the report is built")


class ReportParams(Sparse):
    title: ListName = Field(description="Title of the report")
    sections: list[Section] = Field(min_length=1, max_length=MOST_SECTIONS, description="From top to bottom")


@dataclass(frozen=True)
class Report:
    """A rendered report and the records that it is about."""

    title: str
    body: str
    record_ids: tuple[int, ...]


def render(params: ReportParams, organization_id: int) -> Report:
    """The report as Markdown, its tables filled from the records as they are now.

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
            records, total = _rows(section.table, organization_id)
            parts.append(_rendered(section.table, records, total))
            shown.update(dict.fromkeys(record.pk for record in records))
    body = "\n\n".join(parts) + "\n"
    if len(body) > LONGEST_REPORT:
        raise ToolError(
            ErrorCode.LIMIT_EXCEEDED,
            f"The report has {len(body):,} characters; at most {LONGEST_REPORT:,}.",
            parameter="sections",
            recovery_hint="Shorten the texts or the tables.",
            attempted=False,
        )
    return Report(params.title, body, tuple(shown))


def _rows(table: Table, organization_id: int) -> tuple[list[Record], int]:
    if table.record_ids:
        found = records_of(organization_id).in_bulk([int(record_id) for record_id in table.record_ids])
        if absent := [record_id for record_id in table.record_ids if int(record_id) not in found]:
            raise missing(absent)
        records = [found[int(record_id)] for record_id in table.record_ids]
        return records[: table.limit], len(records)
    matches = matching(organization_id, table.filters or RecordFilters())
    records = list(matches.order_by("name", "id")[: table.limit])
    return records, len(records) if len(records) < table.limit else matches.count()


def _rendered(table: Table, records: list[Record], total: int) -> str:
    if not records:
        return "*No records match.*"
    rows: list[dict[str, Any]] = [row_of(record) for record in records]
    text = markdown_table(table.columns, ([row[column] for column in table.columns] for row in rows))
    return text if len(records) == total else f"{text}\n\n*{len(records)} of {total} records.*"
