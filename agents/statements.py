"""Statements that every pass runs: compiled once instead of at each use, which is most of what the ORM costs.

The queries stay querysets and the rows stay models; only their SQL is kept. Everything that does not run for every
pass uses the ORM as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from django.db import connection
from django.db.models import Field, Model, QuerySet

Row = TypeVar("Row", bound=Model)

_Converters = dict[int, tuple[list[Callable[..., Any]], Any]]
_SLOTS = (1_900_000_011, 1_900_000_012, 1_900_000_013)


class Prepared:
    """A `values_list` queryset over up to three integers, compiled once for each kind of database.

    Args:
        build: makes the queryset from stand-ins for the integers.
    """

    def __init__(self, build: Callable[..., QuerySet[Any, Any]], slots: Sequence[int] = _SLOTS[:1]) -> None:
        self._build = build
        self._slots = tuple(slots)
        self._compiled: dict[str, tuple[str, tuple[Any, ...], _Converters]] = {}

    def rows(self, *values: int) -> list[tuple[Any, ...]]:
        """The rows for these integers, converted as the ORM would."""
        sql, params, converters = self._compiled.get(connection.vendor) or self._compile()
        by_slot = dict(zip(self._slots, values, strict=True))
        with connection.cursor() as cursor:
            cursor.execute(sql, [by_slot.get(param, param) if isinstance(param, int) else param for param in params])
            rows = cursor.fetchall()
        return [_converted(row, converters) for row in rows] if converters else list(rows)

    def _compile(self) -> tuple[str, tuple[Any, ...], _Converters]:
        compiler = self._build(*self._slots).query.get_compiler(connection=connection)
        sql, params = compiler.as_sql()
        if set(self._slots) - {param for param in params if isinstance(param, int)}:
            raise ValueError(f"the stand-ins {self._slots} do not all reach the query: {sql}")
        converters = compiler.get_converters([column[0] for column in compiler.select])
        self._compiled[connection.vendor] = (sql, params, converters)
        return sql, params, converters


def _converted(row: Sequence[Any], converters: _Converters) -> tuple[Any, ...]:
    values = list(row)
    for position, (convert, expression) in converters.items():
        for each in convert:
            values[position] = each(values[position], expression, connection)
    return tuple(values)


def columns_of(model: type[Model], prefix: str = "") -> list[str]:
    """The names of all columns for `values_list`, in the order that `row_of` takes them."""
    return [prefix + field.attname for field in model._meta.concrete_fields]


def row_of(model: type[Row], values: Sequence[Any]) -> Row:
    """An instance from the values of `columns_of`."""
    return model.from_db(connection.alias, [field.attname for field in model._meta.concrete_fields], values)


def insert(rows: Sequence[Model]) -> None:
    """Insert rows of one model in one statement; columns with a default of the database are left to it.

    The rows get their ids.
    """
    if not rows:
        return
    fields = _inserted_fields(type(rows[0]))
    table = rows[0]._meta.db_table
    names = ", ".join(f'"{field.column}"' for field in fields)
    places = f"({', '.join(['%s'] * len(fields))})"
    values = [field.get_db_prep_save(getattr(row, field.attname), connection) for row in rows for field in fields]
    sql = f"INSERT INTO {table} ({names}) VALUES {', '.join([places] * len(rows))} RETURNING id"  # noqa: S608 (names come from models)
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        for row, (pk,) in zip(rows, cursor.fetchall(), strict=True):
            row.pk = pk
            row._state.adding = False


@lru_cache(maxsize=16)
def _inserted_fields(model: type[Model]) -> tuple[Field[Any, Any], ...]:
    return tuple(field for field in model._meta.concrete_fields if not field.primary_key and not field.has_db_default())


def update(model: type[Model], changes: dict[str, Any], where: dict[str, Any]) -> int:
    """Update plain values where columns equal plain values; returns how many rows did."""
    return update_each(model, [(changes, where)])


def update_each(model: type[Model], updates: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> int:
    """Several such updates of the same columns, in one round trip; returns how many rows all of them changed."""
    if not updates:
        return 0
    changes, where = updates[0]
    fields = {field.attname: field for field in model._meta.concrete_fields}
    columns = [fields[name] for name in (*changes, *where)]
    written = [f'"{field.column}" = %s' for field in columns]
    sql = (
        f"UPDATE {model._meta.db_table} SET {', '.join(written[: len(changes)])} "  # noqa: S608 (names come from models)
        f"WHERE {' AND '.join(written[len(changes) :])}"
    )
    values = [
        [
            field.get_db_prep_save(value, connection)
            for field, value in zip(columns, (*new.values(), *old.values()), strict=True)
        ]
        for new, old in updates
    ]
    with connection.cursor() as cursor:
        if len(values) == 1:
            cursor.execute(sql, values[0])
        else:
            cursor.executemany(sql, values)
        return int(cursor.rowcount)
