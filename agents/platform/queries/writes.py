"""Insert and update rows with cached SQL, because composing SQL with the ORM costs more than
running it.

The engine uses these functions for every pass; everything else writes through the ORM.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeAlias

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Field, Model

AnyField: TypeAlias = "Field[Any, Any]"


def insert_rows(rows: Sequence[Model]) -> None:
    """Insert rows of one model in one statement, and set their ids.

    Columns whose only default is in the database are left out, so that the database fills them.
    """
    if not rows:
        return
    model, database = type(rows[0]), connections[DEFAULT_DB_ALIAS]
    fields = _list_inserted_fields(model)
    values = [[getattr(row, field.attname) for field in fields] for row in rows]
    with database.cursor() as cursor:
        if database.vendor == "postgresql":
            cursor.execute(_compose_insert_from_json(model), [_dump_records(fields, values)])
        else:
            names = ", ".join(f'"{field.column}"' for field in fields)
            places = ", ".join([f"({', '.join(['%s'] * len(fields))})"] * len(rows))
            sql = f"INSERT INTO {model._meta.db_table} ({names}) VALUES {places} RETURNING id"  # noqa: S608 (names come from models)
            cursor.execute(
                sql, [value for row in values for value in _prepare_values(fields, row, database)]
            )
        for row, (pk,) in zip(rows, cursor.fetchall(), strict=True):
            row.pk = pk
            row._state.adding = False


def update_rows(model: type[Model], changes: dict[str, Any], where: dict[str, Any]) -> int:
    """Set the columns in `changes` on the rows that match `where`. Both contain only plain values.
    Return the number of changed rows."""
    return update_each(model, [(changes, where)])


def update_each(
    model: type[Model], updates: Sequence[tuple[dict[str, Any], dict[str, Any]]]
) -> int:
    """Run several updates of the same columns in one round trip; return the number of changed rows.

    Args:
        updates: a pair (changes, where) for each update, as in `update_rows`.
    """
    if not updates:
        return 0
    database = connections[DEFAULT_DB_ALIAS]
    changed, matched = (tuple(names) for names in updates[0])
    by_name = {field.attname: field for field in model._meta.concrete_fields}
    fields = [by_name[name] for name in (*changed, *matched)]
    values = [(*changes.values(), *where.values()) for changes, where in updates]
    sql = _compose_update(model, changed, matched)
    with database.cursor() as cursor:
        if len(values) == 1:
            cursor.execute(sql, _prepare_values(fields, values[0], database))
        else:
            cursor.executemany(sql, [_prepare_values(fields, each, database) for each in values])
        return int(cursor.rowcount)


def _prepare_values(
    fields: Sequence[AnyField], values: Sequence[Any], database: BaseDatabaseWrapper
) -> list[Any]:
    return [
        field.get_db_prep_save(value, database) for field, value in zip(fields, values, strict=True)
    ]


@lru_cache(maxsize=16)
def _list_inserted_fields(model: type[Model]) -> tuple[AnyField, ...]:
    """List all fields except the id and the fields whose only default is in the database."""
    fields = (field for field in model._meta.concrete_fields if not field.primary_key)
    return tuple(field for field in fields if field.has_default() or not field.has_db_default())


@lru_cache(maxsize=256)
def _compose_update(model: type[Model], changed: tuple[str, ...], matched: tuple[str, ...]) -> str:
    columns = {field.attname: f'"{field.column}" = %s' for field in model._meta.concrete_fields}
    changes, where = (
        ", ".join(columns[name] for name in changed),
        " AND ".join(columns[name] for name in matched),
    )
    return f"UPDATE {model._meta.db_table} SET {changes} WHERE {where}"  # noqa: S608 (names come from models)


# PostgreSQL gets all rows as one parameter: with one parameter per value, parsing the statement
# would cost more than running it.


def _dump_records(fields: Sequence[AnyField], rows: Sequence[Sequence[Any]]) -> str:
    names = [f"c{number}" for number in range(len(fields))]
    return json.dumps(
        [dict(zip(names, row, strict=True)) for row in rows], default=datetime.isoformat
    )


def _compose_recordset(fields: Sequence[AnyField]) -> str:
    """Return SQL that reads its only parameter as rows with the columns c0, c1, … of the fields'
    types."""
    types = [
        field.rel_db_type(connection) if field.primary_key else field.db_type(connection)
        for field in fields
    ]
    return f"jsonb_to_recordset(%s::jsonb) AS ({', '.join(f'c{number} {type_}' for number, type_ in enumerate(types))})"


@lru_cache(maxsize=16)
def _compose_insert_from_json(model: type[Model]) -> str:
    fields = _list_inserted_fields(model)
    names = ", ".join(f'"{field.column}"' for field in fields)
    values = ", ".join(f"c{number}" for number in range(len(fields)))
    source = f"ROWS FROM ({_compose_recordset(fields)}) WITH ORDINALITY"
    table = model._meta.db_table
    selected = f"SELECT {values} FROM {source} ORDER BY ordinality"  # noqa: S608 (names of models)
    return f"INSERT INTO {table} ({names}) {selected} RETURNING id"
