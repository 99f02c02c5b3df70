"""Statements that run all the time: compiled once instead of at each use, which is most of what the ORM costs.

The queries stay querysets and the rows stay models; only their SQL is kept. It is for what every pass, every reading of
a socket, every sweep and every request with a token does; all else uses the ORM as usual.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import Any, TypeAlias, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Field, Model, QuerySet

Row = TypeVar("Row", bound=Model)

AnyField: TypeAlias = "Field[Any, Any]"
_Converters = dict[int, tuple[list[Callable[..., Any]], Any]]
STAND_INS = (1_900_000_011, 1_900_000_012, 1_900_000_013)
"""For the values of a `Prepared` query, where its columns take numbers so large."""
SMALL_STAND_INS = (31_011, 31_012)
"""For those whose columns do not."""


@dataclass(frozen=True)
class _Compiled:
    """A query for one kind of database; `places` are those of its params that a value is for, and for which one."""

    sql: str
    params: tuple[Any, ...]
    places: tuple[tuple[int, int], ...]
    converters: _Converters

    def params_with(self, values: Sequence[Any]) -> list[Any]:
        params = list(self.params)
        for place, slot in self.places:
            params[place] = values[slot]
        return params


class Prepared:
    """A `values_list` queryset over a few integers or texts, compiled once for each kind of database.

    Args:
        build: makes the queryset from stand-ins for the values.
        slots: the stand-ins, which nothing else in the query is equal to.
    """

    def __init__(self, build: Callable[..., QuerySet[Any, Any]], slots: Sequence[int | str] = STAND_INS[:1]) -> None:
        self._build = build
        self._slots = tuple(slots)
        self._compiled: dict[str, _Compiled] = {}

    def rows(self, *values: int | str) -> list[tuple[Any, ...]]:
        """The rows for these values, converted as the ORM would."""
        return self.converted(self.raw_rows(*values))

    def raw_rows(self, *values: int | str) -> list[tuple[Any, ...]]:
        """The rows as the database's driver gives them.

        Raises:
            ValueError: so many values are not what the query is over.
        """
        if len(values) != len(self._slots):
            raise ValueError(f"{len(values)} values for {len(self._slots)} slots")
        database = connections[DEFAULT_DB_ALIAS]
        compiled = self._compiled.get(database.vendor) or self._compile()
        with database.cursor() as cursor:
            cursor.execute(compiled.sql, compiled.params_with(values))
            return list(cursor.fetchall())

    def converted(self, rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """What `raw_rows` has given, converted as the ORM would."""
        database = connections[DEFAULT_DB_ALIAS]
        converters = (self._compiled.get(database.vendor) or self._compile()).converters
        return [_converted(row, converters, database) for row in rows] if converters else list(rows)

    def _compile(self) -> _Compiled:
        compiler = self._build(*self._slots).query.get_compiler(connection=connection)
        sql, params = compiler.as_sql()
        places = [(place, self._slots.index(param)) for place, param in enumerate(params) if param in self._slots]
        if len({slot for _, slot in places}) != len(self._slots):
            raise ValueError(f"the stand-ins {self._slots} do not all reach the query: {sql}")
        converters = compiler.get_converters([column[0] for column in compiler.select])
        compiled = self._compiled[connection.vendor] = _Compiled(sql, tuple(params), tuple(places), converters)
        return compiled


def _converted(row: Sequence[Any], converters: _Converters, database: BaseDatabaseWrapper) -> tuple[Any, ...]:
    values = list(row)
    for position, (convert, expression) in converters.items():
        for each in convert:
            values[position] = each(values[position], expression, database)
    return tuple(values)


def columns_of(model: type[Model], prefix: str = "", only: Collection[str] = ()) -> list[str]:
    """The names of all columns, or of the id and these, for `values_list`, in the order that `row_of` takes them."""
    names = [field.attname for field in model._meta.concrete_fields]
    return [prefix + name for name in names if not only or name == "id" or name in only]


def row_of(model: type[Row], values: Sequence[Any], only: Collection[str] = ()) -> Row:
    """An instance from the values of `columns_of`; a column that was left out is read when somebody asks for it."""
    return model.from_db(connection.alias, columns_of(model, only=only), values)


def next_row(model: type[Row], values: Iterator[Any]) -> Row:
    """An instance from the next values, where one query joins several models' columns."""
    return row_of(model, tuple(islice(values, len(model._meta.concrete_fields))))


def insert(rows: Sequence[Model]) -> None:
    """Insert rows of one model in one statement; columns with a default of the database are left to it.

    The rows get their ids.
    """
    if not rows:
        return
    model, database = type(rows[0]), connections[DEFAULT_DB_ALIAS]
    fields = _inserted_fields(model)
    values = [[getattr(row, field.attname) for field in fields] for row in rows]
    with database.cursor() as cursor:
        if database.vendor == "postgresql":
            cursor.execute(_insertion_from_json(model), [_as_records(fields, values)])
        else:
            names = ", ".join(f'"{field.column}"' for field in fields)
            places = ", ".join([f"({', '.join(['%s'] * len(fields))})"] * len(rows))
            sql = f"INSERT INTO {model._meta.db_table} ({names}) VALUES {places} RETURNING id"  # noqa: S608 (names come from models)
            cursor.execute(sql, [value for row in values for value in _prepared(fields, row, database)])
        for row, (pk,) in zip(rows, cursor.fetchall(), strict=True):
            row.pk = pk
            row._state.adding = False


def update(model: type[Model], changes: dict[str, Any], where: dict[str, Any]) -> int:
    """Update plain values where columns equal plain values; returns how many rows did."""
    return update_each(model, [(changes, where)])


def update_each(model: type[Model], updates: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> int:
    """Several such updates of the same columns, in one round trip; returns how many rows all of them changed."""
    if not updates:
        return 0
    database = connections[DEFAULT_DB_ALIAS]
    new, old = (tuple(names) for names in updates[0])
    by_name = {field.attname: field for field in model._meta.concrete_fields}
    fields = [by_name[name] for name in (*new, *old)]
    values = [(*changes.values(), *where.values()) for changes, where in updates]
    with database.cursor() as cursor:
        if len(values) == 1:
            cursor.execute(_update(model, new, old), _prepared(fields, values[0], database))
        else:
            cursor.executemany(_update(model, new, old), [_prepared(fields, each, database) for each in values])
        return int(cursor.rowcount)


def _prepared(fields: Sequence[AnyField], values: Sequence[Any], database: BaseDatabaseWrapper) -> list[Any]:
    return [field.get_db_prep_save(value, database) for field, value in zip(fields, values, strict=True)]


@lru_cache(maxsize=16)
def _inserted_fields(model: type[Model]) -> tuple[AnyField, ...]:
    return tuple(field for field in model._meta.concrete_fields if not field.primary_key and not field.has_db_default())


@lru_cache(maxsize=256)
def _update(model: type[Model], new: tuple[str, ...], old: tuple[str, ...]) -> str:
    columns = {field.attname: f'"{field.column}" = %s' for field in model._meta.concrete_fields}
    changes, where = ", ".join(columns[name] for name in new), " AND ".join(columns[name] for name in old)
    return f"UPDATE {model._meta.db_table} SET {changes} WHERE {where}"  # noqa: S608 (names come from models)


# PostgreSQL takes all rows as one parameter: with one for each value, reading the statement costs more than running it.


def _as_records(fields: Sequence[AnyField], rows: Sequence[Sequence[Any]]) -> str:
    names = [f"c{number}" for number in range(len(fields))]
    return json.dumps([dict(zip(names, row, strict=True)) for row in rows], default=datetime.isoformat)


def _records(fields: Sequence[AnyField]) -> str:
    """The columns c0, c1, … of the one parameter, with their types."""
    types = [field.rel_db_type(connection) if field.primary_key else field.db_type(connection) for field in fields]
    return f"jsonb_to_recordset(%s::jsonb) AS ({', '.join(f'c{number} {type_}' for number, type_ in enumerate(types))})"


@lru_cache(maxsize=16)
def _insertion_from_json(model: type[Model]) -> str:
    fields = _inserted_fields(model)
    names = ", ".join(f'"{field.column}"' for field in fields)
    values = ", ".join(f"c{number}" for number in range(len(fields)))
    source = f"ROWS FROM ({_records(fields)}) WITH ORDINALITY"
    return (
        f"INSERT INTO {model._meta.db_table} ({names}) SELECT {values} FROM {source} ORDER BY ordinality RETURNING id"  # noqa: S608 (names come from models)
    )
