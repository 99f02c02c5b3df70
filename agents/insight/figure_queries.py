"""The SQL for counting: add sums to the rows of figures, and find transactions that are still
writing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Model
from django.db.models.functions import Now

from agents.insight.models import (
    EmployeeFigures,
    EmployeeUse,
    FiguresHead,
    ToolFigures,
    TotalFigures,
    TotalUse,
)
from agents.platform.queries.compiled import compile_ids

Key = tuple[Any, ...]

KEYS: dict[type[Model], tuple[str, ...]] = {
    ToolFigures: ("organization_id", "day", "tool"),
    EmployeeFigures: ("employee_id", "day", "tool"),
    EmployeeUse: ("employee_id", "day"),
    TotalFigures: ("tool", "currency"),
    TotalUse: ("currency",),
}
"""The columns that identify a row of each model."""
LARGEST = "slowest_ms"
"""The column that keeps the larger of two numbers instead of their sum."""
_NEWEST = ("last_error_code", "last_error", "last_error_at")
"""The columns that a newer error replaces."""


class CountedError(NamedTuple):
    """The failure of a call."""

    code: str
    message: str
    at: datetime | None


class TransactionNumbers(NamedTuple):
    """The numbers of this transaction and of the oldest transaction still writing; both are 0
    except on PostgreSQL."""

    own: int
    oldest: int


def read_transaction_numbers() -> TransactionNumbers:
    """Read the numbers from PostgreSQL; return zeros for other databases, which have one writer at
    a time."""
    if connection.vendor != "postgresql":
        return TransactionNumbers(0, 0)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_current_xact_id()::text::bigint, pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
        )
        return TransactionNumbers._make(map(int, cursor.fetchone()))


def add_to_figures(
    model: type[Model], sums: Mapping[Key, Mapping[str, int]], errors: Mapping[Key, CountedError]
) -> None:
    """Add each sum to the row that its key identifies, and insert missing rows."""
    if not sums:
        return
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    values = []
    for key, numbers in sums.items():
        row = dict(zip(KEYS[model], key, strict=True)) | dict(numbers)
        row |= dict(zip(_NEWEST, errors.get(key, CountedError("", "", None)), strict=True))
        values.append(
            [field.get_db_prep_save(row.get(field.attname, 0), connection) for field in fields]
        )
    with connection.cursor() as cursor:
        cursor.executemany(_compose_upsert(model), values)


@cache
def _compose_upsert(model: type[Model]) -> str:
    table, keys = model._meta.db_table, KEYS[model]
    columns = [str(field.column) for field in model._meta.concrete_fields if not field.primary_key]
    changes = ", ".join(
        f"{column} = {_compose_change(table, column)}" for column in columns if column not in keys
    )
    places = ", ".join(["%s"] * len(columns))
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608 (names come from models)
        f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"
    )


def _compose_change(table: str, column: str) -> str:
    if column in _NEWEST:
        return f"CASE WHEN excluded.last_error_at IS NULL THEN {table}.{column} ELSE excluded.{column} END"
    if column == LARGEST:
        return f"CASE WHEN excluded.{column} > {table}.{column} THEN excluded.{column} ELSE {table}.{column} END"
    return f"{table}.{column} + excluded.{column}"


FIGURES_NOT_DUE = compile_ids(lambda: FiguresHead.objects.filter(due_at__gt=Now()))
