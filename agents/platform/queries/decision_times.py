"""The SQL of oversight: the time that each decision of a person took, its median, and counts of decisions.

No row says when a person opened a card. A decision therefore takes from the request of its card, or from the person's
decision before it if that was later, so a time is the longest that the person can have looked. There are two
exceptions. The rows of a bulk decision share its time equally, which begins with the oldest card among them. And
somebody who decides a card that they have just edited has known it since the card that they edited.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import QuerySet

from agents.runs.models import CallStatus, Run, ToolCall

QUICK_MS = 2_000
"""An approval in less time counts as quick."""

_ELAPSED_MS = {
    "postgresql": "date_part('epoch', {end} - ({start})) * 1000",
    "sqlite": "(julianday({end}) - julianday({start})) * 86400000.0",
}
_START = "CASE WHEN freed_at > asked_at THEN freed_at ELSE asked_at END"
_TIMES = """
WITH decisions AS ({decisions}),
marked AS (
    SELECT decisions.*,
        CASE WHEN LAG(outcome) OVER by_time = 'edited' AND LAG(tool_call_id) OVER by_time = tool_call_id
            THEN 1 ELSE 0 END AS was_edited,
        LAG(decided_at) OVER by_time AS freed_at,
        LAG(decided_at, 2) OVER by_time AS freed_before,
        LAG(requested_at) OVER by_time AS asked_before
    FROM decisions WINDOW by_time AS (PARTITION BY decided_by_id ORDER BY decided_at, id)
),
shared AS (
    SELECT decided_by_id, bulk_id, ({elapsed}) / many AS ms
    FROM (
        SELECT decided_by_id, bulk_id, COUNT(*) AS many, MIN(requested_at) AS asked_at, MAX(decided_at) AS ended_at,
            CASE WHEN COUNT(freed_at) = COUNT(*) THEN MIN(freed_at) END AS freed_at
        FROM marked WHERE bulk_id IS NOT NULL GROUP BY decided_by_id, bulk_id
    ) AS bulks
),
spans AS (
    SELECT id, decided_by_id, tool_call_id, run_id, status, outcome, bulk_id, decided_at AS ended_at,
        CASE WHEN was_edited = 1 THEN freed_before ELSE freed_at END AS freed_at,
        CASE WHEN was_edited = 1 THEN asked_before ELSE requested_at END AS asked_at
    FROM marked WHERE decided_at >= %s AND outcome <> 'other'
),
timed AS (
    SELECT spans.id, spans.decided_by_id, tool_call_id, run_id, status, outcome, spans.bulk_id,
        CASE WHEN spans.bulk_id IS NULL THEN {elapsed} ELSE shared.ms END AS ms
    FROM spans
    LEFT JOIN shared ON shared.bulk_id = spans.bulk_id AND shared.decided_by_id = spans.decided_by_id
)
"""
_BY_PERSON = f""",
counted AS (
    SELECT decided_by_id, outcome, 1 AS cards, 0 AS in_bulk, ms FROM timed WHERE bulk_id IS NULL
    UNION ALL
    SELECT decided_by_id, outcome, COUNT(*), 1, MIN(ms)
    FROM timed WHERE bulk_id IS NOT NULL GROUP BY decided_by_id, bulk_id, outcome
),
ranked AS (
    SELECT counted.*,
        ROW_NUMBER() OVER (PARTITION BY decided_by_id ORDER BY ms) AS place,
        COUNT(*) OVER (PARTITION BY decided_by_id) AS many
    FROM counted
)
SELECT decided_by_id, SUM(cards), COUNT(*), SUM(in_bulk),
    COALESCE(SUM(cards) FILTER (WHERE outcome = 'approved'), 0),
    COALESCE(SUM(cards) FILTER (WHERE outcome = 'edited'), 0),
    COALESCE(SUM(cards) FILTER (WHERE outcome = 'denied'), 0),
    COUNT(*) FILTER (WHERE outcome = 'approved' AND ROUND(ms) < {QUICK_MS}),
    AVG(ms) FILTER (WHERE place IN ((many + 1) / 2, (many + 2) / 2))
FROM ranked GROUP BY decided_by_id
"""  # noqa: S608 (a number of ours)
_CORRECTIONS = f"""
WITH decisions AS ({{decisions}}),
calls AS (
    SELECT tool_call_id, MIN(shape) AS shape,
        COUNT(*) FILTER (WHERE outcome = 'approved') AS approved,
        COUNT(*) FILTER (WHERE outcome = 'edited') AS edited,
        COUNT(*) FILTER (WHERE outcome = 'denied') AS denied
    FROM decisions WHERE outcome <> 'other' GROUP BY tool_call_id
),
shapes AS (
    SELECT MIN(tool_call_id) AS example_id, COUNT(*) AS calls,
        SUM(approved) AS approved, SUM(edited) AS edited, SUM(denied) AS denied,
        COUNT(*) FILTER (WHERE edited + denied > 0) AS corrected
    FROM calls GROUP BY CASE WHEN shape = '' THEN CAST(tool_call_id AS text) ELSE shape END
)
SELECT call.tool, SUM(calls), SUM(approved), SUM(edited), SUM(denied), SUM(corrected)
FROM shapes INNER JOIN {ToolCall._meta.db_table} call ON call.id = example_id
GROUP BY call.tool ORDER BY call.tool
"""  # noqa: S608 (names come from models)
"""Cards of one shape are about one tool, so one call of each shape tells it, and most calls need not be read."""
_TRUST = f""",
owned AS (
    SELECT timed.outcome, timed.status, timed.ms, call.tool, call.status AS call_status
    FROM timed
    INNER JOIN {ToolCall._meta.db_table} call ON call.id = timed.tool_call_id
    INNER JOIN {Run._meta.db_table} run ON run.id = timed.run_id AND run.employee_id = %s
),
ranked AS (
    SELECT owned.*,
        ROW_NUMBER() OVER (PARTITION BY tool ORDER BY ms) AS place, COUNT(*) OVER (PARTITION BY tool) AS many
    FROM owned
)
SELECT tool,
    COUNT(*) FILTER (WHERE outcome = 'approved'),
    COUNT(*) FILTER (WHERE outcome = 'edited'),
    COUNT(*) FILTER (WHERE outcome = 'denied'),
    COUNT(*) FILTER (WHERE status = 'consumed'),
    COUNT(*) FILTER (WHERE status = 'consumed' AND call_status = '{CallStatus.FAILED.value}'),
    COUNT(*) FILTER (WHERE status = 'consumed' AND call_status = '{CallStatus.OUTCOME_UNKNOWN.value}'),
    AVG(ms) FILTER (WHERE place IN ((many + 1) / 2, (many + 2) / 2))
FROM ranked GROUP BY tool ORDER BY tool
"""  # noqa: S608 (names come from models)
COLUMNS = (
    *("id", "tool_call_id", "run_id", "shape", "requested_at", "status"),
    *("decided_by_id", "decided_at", "bulk_id", "outcome"),
)
"""The columns that a query for decisions must have."""


class PersonDecisions(NamedTuple):
    """The decisions of one person.

    Attributes:
        cards: all decided cards.
        decisions: the same, with each bulk decision counted as one for each outcome.
        in_bulk: the bulk decisions among them.
        approved, edited, denied: cards.
        quick: the decisions that approved in less than `QUICK_MS`.
        median_ms: the median time of a decision; of one in bulk, the time for each of its rows.
    """

    user_id: int
    cards: int
    decisions: int
    in_bulk: int
    approved: int
    edited: int
    denied: int
    quick: int
    median_ms: int


class ToolCorrections(NamedTuple):
    """The decided calls of one tool.

    Attributes:
        calls: the calls with at least one decided card.
        corrected: the calls that were denied or edited.
        approved, edited, denied: cards.
    """

    tool: str
    calls: int
    approved: int
    edited: int
    denied: int
    corrected: int

    @property
    def corrected_percent(self) -> int:
        return round(100 * self.corrected / self.calls)


class ToolTrust(NamedTuple):
    """The decisions about the cards of one tool, and the approved calls that started.

    Attributes:
        approved, edited, denied: cards.
        started: the calls that started after an approval.
        failed: those of them that failed.
        unknown: those of them whose outcome is unknown.
        median_ms: the median time for a card.
    """

    tool: str
    approved: int
    edited: int
    denied: int
    started: int
    failed: int
    unknown: int
    median_ms: int


def fetch_person_decisions(decisions: QuerySet[Any], since: datetime) -> list[PersonDecisions]:
    """Fetch the decisions of each person since this time.

    Args:
        decisions: rows with `COLUMNS`, earlier ones included, so that each decision knows the one before it.
    """
    return [PersonDecisions(*map(round, row)) for row in _fetch(decisions, since, _BY_PERSON)]


def fetch_tool_trust(decisions: QuerySet[Any], since: datetime, employee_id: int) -> list[ToolTrust]:
    """Fetch the decisions about an employee's cards since this time, in the order of the tools' names.

    Args:
        decisions: those of the whole organization, because people decide for several employees in turn.
    """
    return [ToolTrust(tool, *map(round, row)) for tool, *row in _fetch(decisions, since, _TRUST, employee_id)]


def fetch_tool_corrections(decisions: QuerySet[Any]) -> list[ToolCorrections]:
    """Fetch how the calls of each tool were decided, in the order of the tools' names."""
    return [ToolCorrections(tool, *map(int, row)) for tool, *row in _execute(_CORRECTIONS, decisions)]


def _fetch(decisions: QuerySet[Any], since: datetime, selection: str, *more: int) -> list[tuple[Any, ...]]:
    elapsed = _ELAPSED_MS[connection.vendor].format(end="ended_at", start=_START)
    times = _TIMES.format(decisions="{decisions}", elapsed=elapsed)
    return _execute(times + selection, decisions, connection.ops.adapt_datetimefield_value(since), *more)


def _execute(statement: str, decisions: QuerySet[Any], *more: int | str | None) -> list[tuple[Any, ...]]:
    """Execute a statement with this query in place of `{decisions}`."""
    sql, params = decisions.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(statement.format(decisions=sql), [*params, *more])
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
