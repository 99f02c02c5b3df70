"""Tools that score and compare records without storing anything."""

import re
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from tools.contract import ErrorCode, Level, Tool, ToolContext, ToolError, ToolResult
from tools.office.records.fields import Name, RecordFilters, RecordId, RecordIds, Selection, Sparse
from tools.office.records.models import Record
from tools.office.records.queries import build_missing_error, find_records, get_records
from tools.office.records.tables import build_markdown_table
from tools.office.tools.outputs import Comparison, Score, Scores
from tools.office.tools.record_writes import require_selection
from tools.office.tools.scoring import score_record

MAX_SCORED = 200
MAX_COMPARED = 10_000
MAX_SHOWN = 200
LEGAL_FORMS = frozenset(
    {
        "ag",
        "bv",
        "co",
        "corp",
        "corporation",
        "gmbh",
        "inc",
        "kg",
        "limited",
        "llc",
        "ltd",
        "oy",
        "plc",
        "sa",
        "sarl",
        "spa",
        "srl",
    }
)


class ScoreRecord(Tool):
    """Result data: {id, name, score, stored_score, reasons: [{points, of, text}]}."""

    name = "analysis.scoreRecord"
    display_name = "Score a record"
    description = "Compute a score from 0 to 100 for one record, with the reasons. Stores nothing."
    level = Level.READ
    Output = Score

    class Params(Sparse):
        record_id: RecordId = Field(description="Id of the record, from data.searchRecords")

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        record = get_records(context.organization_id).filter(pk=int(params.record_id)).first()
        if record is None:
            raise build_missing_error([params.record_id])
        data = score_record(record)
        reasons = [
            (reason["text"], f"{reason['points']} of {reason['of']}") for reason in data["reasons"]
        ]
        head = f"{record.name} scores {data['score']} of 100"
        return ToolResult.ok(
            data,
            head,
            f"{head} (id {record.pk}).\n\n{build_markdown_table(('reason', 'points'), reasons)}",
        )


class BatchScore(Tool):
    """Result data: {scores: [see analysis.scoreRecord, highest first], total, scored, average}."""

    name = "analysis.batchScore"
    display_name = "Score many records"
    description = (
        "Score up to 200 records in one call, by ids or filters, the highest first. Stores nothing."
    )
    level = Level.READ
    Output = Scores

    class Params(Selection):
        record_ids: RecordIds | None = Field(
            None, max_length=MAX_SCORED, description="Ids of the records; or give filters"
        )
        limit: int = Field(
            50, ge=1, le=MAX_SCORED, description="With filters: maximum number of records to score"
        )

    def validate(self, params: Params) -> None:
        require_selection(params)

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        records, total = _select_records(params, context.organization_id)
        scores = sorted(
            (score_record(record) for record in records),
            key=lambda score: (-score["score"], score["name"]),
        )
        average = (
            round(sum(score["score"] for score in scores) / len(scores), 1) if scores else None
        )
        data = {"scores": scores, "total": total, "scored": len(scores), "average": average}
        of = f" of {total}" if total > len(scores) else ""
        table = build_markdown_table(
            ("id", "name", "score", "stored score"),
            (
                (score["id"], score["name"], score["score"], score["stored_score"])
                for score in scores
            ),
        )
        head = f"Scored {len(scores)}{of} records" + (f", {average} on average" if scores else "")
        return ToolResult.ok(data, head, f"{head}.\n\n{table}")


def _select_records(params: BatchScore.Params, organization_id: int) -> tuple[list[Record], int]:
    if params.record_ids:
        found = get_records(organization_id).in_bulk(
            [int(record_id) for record_id in params.record_ids]
        )
        if absent := [record_id for record_id in params.record_ids if int(record_id) not in found]:
            raise build_missing_error(absent)
        return list(found.values()), len(found)
    matches = find_records(organization_id, params.filters or RecordFilters())
    return list(matches.order_by("name", "id")[: params.limit]), matches.count()


class CrossReference(Tool):
    """Result data if `names` is given: {found: [{name, records: [{id, name}]}], missing: [name]}.

    Result data if `other_filters` is given: {both, only_first, only_second: [{id, name}], counts};
    `counts` has the same keys.
    """

    name = "analysis.crossReference"
    display_name = "Cross-reference records"
    description = (
        "Compare records with a list of names (to find known and missing ones), or with the records of a second filter "
        "(to find those in both, or only in one). Case, punctuation and legal forms of names are ignored."
    )
    level = Level.READ
    Output = Comparison

    class Params(Sparse):
        filters: RecordFilters | None = Field(
            None, description="The records to compare; if omitted, all records"
        )
        names: list[Name] | None = Field(
            None, max_length=500, description="Names to look for; or give other_filters"
        )
        other_filters: RecordFilters | None = Field(
            None, description="A second set of records; or give names"
        )
        match_on: Literal["record", "name", "domain"] = Field(
            "record",
            description="With other_filters: the value by which two records count as the same",
        )

    def validate(self, params: Params) -> None:
        if bool(params.names) == (params.other_filters is not None):
            raise ToolError(
                ErrorCode.INVALID_PARAMETER,
                "Exactly one of 'names' and 'other_filters' is required.",
                parameter="names",
                expected="a list of names, or other_filters",
                example='{"filters": {"region": "EU"}, "names": ["Acme Corp", "Globex"]}',
                attempted=False,
            )

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        first = _load_records(params.filters, context.organization_id)
        if params.other_filters is None:
            return _compare_with_names(first, params.names or [])
        return _compare_with_records(
            first, _load_records(params.other_filters, context.organization_id), params.match_on
        )


def _load_records(filters: RecordFilters | None, organization_id: int) -> list[Record]:
    found = (
        find_records(organization_id, filters or RecordFilters())
        .only("id", "name", "domain")
        .order_by("name", "id")
    )
    records = list(found[: MAX_COMPARED + 1])
    if len(records) > MAX_COMPARED:
        raise ToolError(
            ErrorCode.LIMIT_EXCEEDED,
            f"{found.count():,} records are too many to compare; the limit is {MAX_COMPARED:,}.",
            parameter="filters",
            recovery_hint="Narrow the filters.",
            attempted=False,
        )
    return records


def normalize_name(name: str) -> str:
    """Remove case, punctuation and legal form from a name: "ACME Corp." and "Acme" become the
    same."""
    words = re.findall(r"\w+", name.casefold())
    meaningful = [word for word in words if word not in LEGAL_FORMS]
    return " ".join(meaningful or words)


def _build_reference(record: Record) -> dict[str, str]:
    return {"id": str(record.pk), "name": record.name}


def _compare_with_names(records: Iterable[Record], names: list[str]) -> ToolResult:
    by_key: dict[str, list[dict[str, str]]] = {}
    for record in records:
        by_key.setdefault(normalize_name(record.name), []).append(_build_reference(record))
    found = [
        {"name": name, "records": by_key[normalize_name(name)]}
        for name in names
        if normalize_name(name) in by_key
    ]
    absent = [name for name in names if normalize_name(name) not in by_key]
    summary = f"Found {len(found)} of {len(names)} names"
    return ToolResult.ok({"found": found, "missing": absent}, summary)


def _compare_with_records(first: list[Record], second: list[Record], match_on: str) -> ToolResult:
    first_keys, second_keys = (
        {_build_key(record, match_on) for record in side} - {""} for side in (first, second)
    )
    groups = {
        "both": [record for record in first if _build_key(record, match_on) in second_keys],
        "only_first": [
            record for record in first if _build_key(record, match_on) not in second_keys
        ],
        "only_second": [
            record for record in second if _build_key(record, match_on) not in first_keys
        ],
    }
    counts = {group: len(records) for group, records in groups.items()}
    data: dict[str, Any] = {
        group: [_build_reference(record) for record in records[:MAX_SHOWN]]
        for group, records in groups.items()
    }
    rest = f"{counts['only_first']} only in the first, {counts['only_second']} only in the second"
    summary = f"{counts['both']} in both, {rest}"
    return ToolResult.ok({**data, "counts": counts}, summary)


def _build_key(record: Record, match_on: str) -> str:
    if match_on == "name":
        return normalize_name(record.name)
    return record.domain.lower() if match_on == "domain" else str(record.pk)
