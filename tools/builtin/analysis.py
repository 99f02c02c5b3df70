"""Tools that judge records; they store nothing."""

import re
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from tools.contract import ErrorCode, Level, Tool, ToolContext, ToolError, ToolResult
from tools.records.fields import Name, RecordFilters, RecordId, RecordIds, Selection, Sparse
from tools.records.models import Record
from tools.records.queries import matching, missing, records_of
from tools.records.tables import markdown_table

from .analysis_scoring import scored
from .data_base import require_selection
from .outputs import Compared, Score, Scores

MOST_SCORED = 200
MOST_COMPARED = 10_000
MOST_SHOWN = 200
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
    """data: {id, name, score, stored_score, reasons: [{points, of, text}]}."""

    name = "analysis.scoreRecord"
    display_name = "Score a record"
    description = "Work out a score from 0 to 100 for one record, with the reasons. Stores nothing."
    level = Level.READ
    Output = Score

    class Params(Sparse):
        record_id: RecordId = Field(description="Id of the record, from data.searchRecords")

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        record = records_of(context.organization_id).filter(pk=int(params.record_id)).first()
        if record is None:
            raise missing([params.record_id])
        data = scored(record)
        reasons = [(reason["text"], f"{reason['points']} of {reason['of']}") for reason in data["reasons"]]
        head = f"{record.name} scores {data['score']} of 100"
        return ToolResult.ok(data, head, f"{head} (id {record.pk}).\n\n{markdown_table(('reason', 'points'), reasons)}")


class BatchScore(Tool):
    """data: {scores: [as analysis.scoreRecord, highest first], total, scored, average}."""

    name = "analysis.batchScore"
    display_name = "Score many records"
    description = "Score up to 200 records in one call, by ids or filters, the highest first. Stores nothing."
    level = Level.READ
    Output = Scores

    class Params(Selection):
        record_ids: RecordIds | None = Field(
            None, max_length=MOST_SCORED, description="Ids of the records; or give filters"
        )
        limit: int = Field(50, ge=1, le=MOST_SCORED, description="With filters: most records to score, by name")

    def validate(self, params: Params) -> None:
        require_selection(params)

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        records, total = _to_score(params, context.organization_id)
        scores = sorted((scored(record) for record in records), key=lambda score: (-score["score"], score["name"]))
        average = round(sum(score["score"] for score in scores) / len(scores), 1) if scores else None
        data = {"scores": scores, "total": total, "scored": len(scores), "average": average}
        of = f" of {total}" if total > len(scores) else ""
        table = markdown_table(
            ("id", "name", "score", "stored score"),
            ((score["id"], score["name"], score["score"], score["stored_score"]) for score in scores),
        )
        head = f"Scored {len(scores)}{of} records" + (f", {average} on average" if scores else "")
        return ToolResult.ok(data, head, f"{head}.\n\n{table}")


def _to_score(params: BatchScore.Params, organization_id: int) -> tuple[list[Record], int]:
    if params.record_ids:
        found = records_of(organization_id).in_bulk([int(record_id) for record_id in params.record_ids])
        if absent := [record_id for record_id in params.record_ids if int(record_id) not in found]:
            raise missing(absent)
        return list(found.values()), len(found)
    matches = matching(organization_id, params.filters or RecordFilters())
    return list(matches.order_by("name", "id")[: params.limit]), matches.count()


class CrossReference(Tool):
    """data with names: {found: [{name, records: [{id, name}]}], missing: [name]}.

    data with other_filters: {both, only_first, only_second: [{id, name}], counts: {both, only_first, only_second}}.
    """

    name = "analysis.crossReference"
    display_name = "Cross-reference records"
    description = (
        "Compare records with a list of names (which are known, which are missing), or with the records of a second "
        "filter (which are in both, which only in one). Names are compared without case, punctuation and legal form."
    )
    level = Level.READ
    Output = Compared

    class Params(Sparse):
        filters: RecordFilters | None = Field(None, description="The records to compare; left out: all of them")
        names: list[Name] | None = Field(None, max_length=500, description="Names to look for; or give other_filters")
        other_filters: RecordFilters | None = Field(None, description="A second set of records; or give names")
        match_on: Literal["record", "name", "domain"] = Field(
            "record", description="With other_filters: when two records count as the same"
        )

    def validate(self, params: Params) -> None:
        if bool(params.names) == (params.other_filters is not None):
            raise ToolError(
                ErrorCode.INVALID_PARAMETER,
                "Exactly one of 'names' and 'other_filters' is needed.",
                parameter="names",
                expected="a list of names, or other_filters",
                example='{"filters": {"region": "EU"}, "names": ["Acme Corp", "Globex"]}',
                attempted=False,
            )

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        first = _compared(params.filters, context.organization_id)
        if params.other_filters is None:
            return _against_names(first, params.names or [])
        return _against_records(first, _compared(params.other_filters, context.organization_id), params.match_on)


def _compared(filters: RecordFilters | None, organization_id: int) -> list[Record]:
    found = matching(organization_id, filters or RecordFilters()).only("id", "name", "domain").order_by("name", "id")
    records = list(found[: MOST_COMPARED + 1])
    if len(records) > MOST_COMPARED:
        raise ToolError(
            ErrorCode.LIMIT_EXCEEDED,
            f"{found.count():,} records are too many to compare; at most {MOST_COMPARED:,}.",
            parameter="filters",
            recovery_hint="Narrow the filters.",
            attempted=False,
        )
    return records


def name_key(name: str) -> str:
    """The name without case, punctuation and legal form: "ACME Corp." and "Acme" are equal."""
    words = re.findall(r"\w+", name.casefold())
    meaningful = [word for word in words if word not in LEGAL_FORMS]
    return " ".join(meaningful or words)


def _brief(record: Record) -> dict[str, str]:
    return {"id": str(record.pk), "name": record.name}


def _against_names(records: Iterable[Record], names: list[str]) -> ToolResult:
    by_key: dict[str, list[dict[str, str]]] = {}
    for record in records:
        by_key.setdefault(name_key(record.name), []).append(_brief(record))
    found = [{"name": name, "records": by_key[name_key(name)]} for name in names if name_key(name) in by_key]
    absent = [name for name in names if name_key(name) not in by_key]
    summary = f"{len(found)} of {len(names)} names are known"
    return ToolResult.ok({"found": found, "missing": absent}, summary)


def _against_records(first: list[Record], second: list[Record], match_on: str) -> ToolResult:
    first_keys, second_keys = ({_key(record, match_on) for record in side} - {""} for side in (first, second))
    groups = {
        "both": [record for record in first if _key(record, match_on) in second_keys],
        "only_first": [record for record in first if _key(record, match_on) not in second_keys],
        "only_second": [record for record in second if _key(record, match_on) not in first_keys],
    }
    counts = {group: len(records) for group, records in groups.items()}
    data: dict[str, Any] = {
        group: [_brief(record) for record in records[:MOST_SHOWN]] for group, records in groups.items()
    }
    alone = f"{counts['only_first']} only in the first, {counts['only_second']} only in the second"
    summary = f"{counts['both']} in both, {alone}"
    return ToolResult.ok({**data, "counts": counts}, summary)


def _key(record: Record, match_on: str) -> str:
    if match_on == "name":
        return name_key(record.name)
    return record.domain.lower() if match_on == "domain" else str(record.pk)
