"""Compile a queryset once for each kind of database: compiling is most of the ORM's cost.

Define a query with a NamedTuple for its rows; the fields name the columns:

    class DueRun(NamedTuple):
        lease_epoch: int
        now: datetime

    DUE_RUN = CompiledQuery(
        DueRun, lambda run_id: Run.objects.filter(pk=run_id).order_by(), now=Now()
    )

    for row in DUE_RUN.fetch_all(7): print(row.lease_epoch)

If a field is not named like its column, pass a keyword with its name: the path of the column, an
expression, or `ModelColumns` for an instance of a model.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.sql.compiler import SQLCompiler

Row = TypeVar("Row", bound=NamedTuple)
Value = int | str

PLACEHOLDERS = (31_011, 31_012, 31_013)
"""The values that stand for the params when a query is compiled. They are small enough for every
integer column, and are not used anywhere else."""

MAX_IDS = 200

_Converters = dict[int, tuple[list[Callable[..., Any]], Any]]


class IdRow(NamedTuple):
    """A row of a query that selects only ids."""

    pk: int


def compile_ids(
    build: Callable[[], QuerySet[Any]], most: int = MAX_IDS, pk: str = "pk"
) -> CompiledQuery[IdRow]:
    """Compile a query for due ids. It returns at most `most` ids, so that a sweep ends soon; the
    next sweep handles the remaining ids."""
    return CompiledQuery(IdRow, lambda: build()[:most], pk=pk)


@dataclass(frozen=True)
class ModelColumns:
    """The columns of a model that a row contains as one instance.

    Attributes:
        model: the class of the instance.
        prefix: the path from the query's model to this one, such as `employee__`.
        only: the columns to read besides the id; all columns if empty. The instance reads any other
            column on first use.
    """

    model: type[Model]
    prefix: str = ""
    only: Collection[str] = ()

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns, in the order of the model's fields."""
        names = [field.attname for field in self.model._meta.concrete_fields]
        return [name for name in names if not self.only or name == "id" or name in self.only]

    @property
    def paths(self) -> list[str]:
        """The paths of the columns, as seen from the query's model."""
        return [self.prefix + name for name in self.names]

    def build_instance(self, values: Iterator[Any]) -> Model:
        """Build an instance from the next values of a row."""
        return self.model.from_db(
            DEFAULT_DB_ALIAS, self.names, tuple(islice(values, len(self.names)))
        )


@dataclass(frozen=True)
class _Statement:
    """A query that was compiled for one kind of database. `places` pairs the index of each variable
    param with the number of its value."""

    sql: str
    params: tuple[Any, ...]
    places: tuple[tuple[int, int], ...]
    converters: _Converters

    def fill_params(self, values: Sequence[Value]) -> list[Any]:
        params = list(self.params)
        for place, number in self.places:
            params[place] = values[number]
        return params


class CompiledQuery(Generic[Row]):
    """A query with a few integers or texts as params, compiled on first use.

    Args:
        row_type: the class of the rows.
        build: returns the queryset for the values, without columns.
        placeholders: the values with which the query is compiled; required if a value is a text.
        columns: the column's path, an expression or `ModelColumns`, for each field that is not
            named like its column.
    """

    def __init__(
        self,
        row_type: type[Row],
        build: Callable[..., QuerySet[Any, Any]],
        *,
        placeholders: Sequence[Value] | None = None,
        **columns: str | Combinable | ModelColumns,
    ) -> None:
        count = len(inspect.signature(build).parameters)
        self._row_type = row_type
        self._build = build
        self._placeholders = tuple(placeholders or PLACEHOLDERS[:count])
        self._columns = [columns.get(name, name) for name in row_type._fields]
        self._holds_models = any(isinstance(column, ModelColumns) for column in self._columns)
        self._statements: dict[str, _Statement] = {}

    def fetch_all(self, *values: Value) -> list[Row]:
        """Return the rows for these values, converted as the ORM would."""
        if len(values) != len(self._placeholders):
            raise ValueError(f"{len(values)} values for {len(self._placeholders)} placeholders")
        database = connections[DEFAULT_DB_ALIAS]
        statement = self._statements.get(database.vendor) or self._compile(database)
        with database.cursor() as cursor:
            cursor.execute(statement.sql, statement.fill_params(values))
            fetched: Iterable[Iterable[Any]] = cursor.fetchall()
        if statement.converters:
            fetched = _convert_rows(fetched, statement.converters, database)
        return list(map(self._build_row if self._holds_models else self._row_type._make, fetched))

    def fetch_one(self, *values: Value) -> Row | None:
        """Return the first row for these values; None if there is none."""
        return next(iter(self.fetch_all(*values)), None)

    def _build_row(self, values: Iterable[Any]) -> Row:
        left = iter(values)
        return self._row_type._make(
            [
                column.build_instance(left) if isinstance(column, ModelColumns) else next(left)
                for column in self._columns
            ]
        )

    def _compile(self, database: BaseDatabaseWrapper) -> _Statement:
        flat: list[str | Combinable] = []
        for column in self._columns:
            flat += column.paths if isinstance(column, ModelColumns) else [column]
        rows = self._build(*self._placeholders).values_list(*flat)
        compiler: SQLCompiler = rows.query.get_compiler(connection=database)
        sql, params = compiler.as_sql()
        placeholders = self._placeholders
        places = tuple(
            (place, placeholders.index(param))
            for place, param in enumerate(params)
            if param in placeholders
        )
        if len({number for _, number in places}) != len(placeholders):
            raise ValueError(f"the placeholders {placeholders} do not all reach the query: {sql}")
        converters = compiler.get_converters([column[0] for column in compiler.select])
        statement = self._statements[database.vendor] = _Statement(
            sql, tuple(params), places, converters
        )
        return statement


def _convert_rows(
    rows: Iterable[Iterable[Any]], converters: _Converters, database: BaseDatabaseWrapper
) -> Iterator[list[Any]]:
    for row in rows:
        values = list(row)
        for position, (convert, expression) in converters.items():
            for each in convert:
                values[position] = each(values[position], expression, database)
        yield values
