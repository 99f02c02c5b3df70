"""Tools that read records."""

from pydantic import Field

from tools.contract import Level, Tool, ToolContext, ToolResult
from tools.contract.sentences import format_value
from tools.office.records.fields import RecordFilters, RecordId, Sparse
from tools.office.records.models import Record
from tools.office.records.queries import (
    build_detail,
    build_missing_error,
    build_row,
    count_by_field,
    count_by_score,
    find_records,
    get_records,
    list_known_values,
)
from tools.office.records.tables import build_markdown_table
from tools.office.tools.outputs import FoundRecords, RecordDetail, RecordStats

COLUMNS = (
    "id",
    "name",
    "region",
    "category",
    "status",
    "score",
    "email",
    "domain",
    "qualification",
)


class SearchRecords(Tool):
    """Result data: {records: [row], total, filters_applied}; `total` counts all matches."""

    name = "data.searchRecords"
    display_name = "Search records"
    description = (
        "Search the organization's business records (companies, customers, leads) and filter them by region, category, "
        "status, qualification, score and text. Archived records are omitted. Returns the ids that other tools need."
    )
    level = Level.READ
    Output = FoundRecords

    class Params(RecordFilters):
        limit: int = Field(100, ge=1, le=1000, description="Maximum number of records to return")

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        found = find_records(context.organization_id, params)
        rows = [build_row(record) for record in found.order_by("name", "id")[: params.limit]]
        total = len(rows) if len(rows) < params.limit else found.count()
        data = {"records": rows, "total": total, "filters_applied": params.get_conditions()}
        if not rows:
            return ToolResult.ok(
                data,
                f"Found no records{_describe_filters(params)}",
                _describe_no_match(params, context.organization_id),
            )
        table = build_markdown_table(COLUMNS, ([row[column] for column in COLUMNS] for row in rows))
        noun = "record" if total == 1 else "records"
        head = f"{total} {noun}{_describe_filters(params)}"
        shown = f", the first {len(rows)} of them" if len(rows) < total else ""
        return ToolResult.ok(data, f"Found {head}", f"{head}{shown}:\n\n{table}")

    def running_summary(self, params: Params) -> str:
        return f"Searching records{_describe_filters(params)}…"


def _describe_filters(filters: RecordFilters) -> str:
    others = {key: value for key, value in filters.get_conditions().items() if key != "region"}
    rest = RecordFilters(**others).describe()
    return (f" in {format_value(filters.region)}" if filters.region else "") + (
        f" ({rest})" if rest else ""
    )


def _describe_no_match(filters: RecordFilters, organization_id: int) -> str:
    known = {
        field: ", ".join(list_known_values(organization_id, field)) or "none"
        for field in ("region", "category")
        if getattr(filters, field)
    }
    hints = [f"Values of {field} in use: {values}." for field, values in known.items()]
    return " ".join([f"No record matches{_describe_filters(filters)}.", *hints])


class GetRecordDetail(Tool):
    """Result data: {record: {…all fields, lists, history}}."""

    name = "data.getRecordDetail"
    display_name = "Read a record"
    description = (
        "Read one record with all of its fields, the lists it is on and the history of its changes."
    )
    level = Level.READ
    Output = RecordDetail

    class Params(Sparse):
        record_id: RecordId = Field(description="Id of the record, from data.searchRecords")

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        record: Record | None = (
            get_records(context.organization_id).filter(pk=int(params.record_id)).first()
        )
        if record is None:
            raise build_missing_error([params.record_id])
        return ToolResult.ok({"record": build_detail(record)}, f"Read record {record.name}")


class GetStats(Tool):
    """Result data: {total, archived, by_region, by_category, by_status, by_qualification, by_score,
    filters_applied}."""

    name = "data.getStats"
    display_name = "Count records"
    description = "Count the records by region, category, status, qualification and score, all of them or filtered."
    level = Level.READ
    Output = RecordStats

    class Params(RecordFilters):
        pass

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        found = find_records(context.organization_id, params)
        groups = {
            f"by_{field}": count_by_field(found, field)
            for field in ("region", "category", "status", "qualification")
        }
        groups["by_score"] = count_by_score(found)
        total = sum(groups["by_score"].values())
        data = {
            "total": total,
            "archived": get_records(context.organization_id)
            .filter(archived_at__isnull=False)
            .count(),
            **groups,
            "filters_applied": params.get_conditions(),
        }
        columns = ("value", "records")
        tables = [
            f"**{name.removeprefix('by_').capitalize()}**\n\n{build_markdown_table(columns, counts.items())}"
            for name, counts in groups.items()
        ]
        head = f"{total} records{_describe_filters(params)}; {data['archived']} of all records in the archive"
        return ToolResult.ok(
            data,
            f"Counted {total} records{_describe_filters(params)}",
            "\n\n".join([head, *tables]),
        )
