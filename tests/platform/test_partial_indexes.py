"""Partial indexes: PostgreSQL uses them for statements prepared without known params."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import QuerySet

from agents.runs.models import IS_PENDING, IS_UNFINISHED, UNFINISHED, Approval, ApprovalStatus, Run

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(
        "connection.vendor != 'postgresql'", reason="only PostgreSQL plans without the params"
    ),
]


OTHERS = """
SELECT indexname FROM pg_indexes WHERE tablename = %s AND indexname <> %s
AND indexname NOT IN (SELECT conindid::regclass::text FROM pg_constraint)
"""


def leave_only(index: str, table: str) -> None:
    """Drop the other indexes of the table until the test ends: for few rows, the planner may prefer
    them."""
    with connection.cursor() as cursor:
        cursor.execute(OTHERS, [table, index])
        for (name,) in cursor.fetchall():
            cursor.execute(f"DROP INDEX {connection.ops.quote_name(name)}")


def plan_without_params(rows: QuerySet[Any]) -> str:
    """Return PostgreSQL's generic plan, which serves all values of the params."""
    sql, params = rows.query.sql_with_params()
    numbered = sql % tuple(f"${number}" for number in range(1, len(params) + 1))
    values = ", ".join(f"'{value}'" for value in params)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        # Turn off the alternatives: with few rows, they may cost no more than the index.
        for way in (
            "seqscan",
            "bitmapscan",
            "sort",
            "incremental_sort",
        ):
            cursor.execute(f"SET LOCAL enable_{way} = off")
        cursor.execute(f"PREPARE probe AS {numbered}")
        cursor.execute(f"EXPLAIN EXECUTE probe({values})")
        plan = "\n".join(line for (line,) in cursor.fetchall())
        cursor.execute("DEALLOCATE probe")
    return plan


def test_the_query_for_waiting_cards_uses_its_partial_index() -> None:
    leave_only("approvals_waiting", Approval._meta.db_table)
    waiting = Approval.objects.filter(organization_id=1).order_by("tool_call_id", "pk")
    assert "approvals_waiting" in plan_without_params(waiting.filter(IS_PENDING)[:1001])
    assert "approvals_waiting" not in plan_without_params(
        waiting.filter(status=ApprovalStatus.PENDING)[:1001]
    )


def test_the_query_for_open_runs_uses_its_partial_index() -> None:
    leave_only("runs_unfinished", Run._meta.db_table)
    runs = Run.objects.filter(organization_id=1).order_by()
    assert "runs_unfinished" in plan_without_params(
        runs.filter(IS_UNFINISHED).values("employee_id")
    )
    assert "runs_unfinished" not in plan_without_params(
        runs.filter(status__in=UNFINISHED).values("employee_id")
    )
