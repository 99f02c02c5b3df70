"""A queryset compiled once for each kind of database, because compiling is most of what the ORM costs.

Define a query with a NamedTuple for its rows; the fields name the columns:

    class DueRun(NamedTuple):
        lease_epoch: int
        now: datetime

    DUE_RUN = CompiledQuery(DueRun, lambda run_id: Run.objects.filter(pk=run_id).order_by(), now=Now())

    for row in DUE_RUN.rows(7): print(row.lease_epoch)

Where a field has another name than its column, a keyword names the column, gives an expression, or a `ModelColumns`:
then the field holds an instance of that model.
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
"""Stand for the values while a query is compiled: small enough for every integer column, and used nowhere else."""

_Converters = dict[int, tuple[list[Callable[..., Any]], Any]]


class Id(NamedTuple):
    """The row of a query for ids alone."""

    pk: int


@dataclass(frozen=True)
class ModelColumns:
    """Columns of a model that a row holds as one instance.

    Attributes:
        model: the class of the instance.
        prefix: leads from the query's model to this one, such as `employee__`.
        only: the columns to read besides the id; all if empty. The instance reads any other on first use.
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
        """The same names as seen from the query's model."""
        return [self.prefix + name for name in self.names]

    def take(self, values: Iterator[Any]) -> Model:
        """Make an instance from the next values of a row."""
        return self.model.from_db(DEFAULT_DB_ALIAS, self.names, tuple(islice(values, len(self.names))))


@dataclass(frozen=True)
class _Statement:
    """A query for one kind of database; `places` says which of its params take a value, and which value."""

    sql: str
    params: tuple[Any, ...]
    places: tuple[tuple[int, int], ...]
    converters: _Converters

    def params_with(self, values: Sequence[Value]) -> list[Any]:
        params = list(self.params)
        for place, number in self.places:
            params[place] = values[number]
        return params


class CompiledQuery(Generic[Row]):
    """A query over a few integers or texts.

    Args:
        row_type: the class of the rows.
        build: makes the queryset from the values; the columns are added to it.
        placeholders: stand for the values while the query is compiled; needed where one of them is a text.
        columns: for each field of the row that is not named like its column: the column's path, an expression, or a
            `ModelColumns`.
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

    def rows(self, *values: Value) -> list[Row]:
        """The rows for these values, converted as the ORM would."""
        database = connections[DEFAULT_DB_ALIAS]
        statement = self._statement_for(database)
        found = self._execute(database, statement, values)
        converted = _converted(found, statement.converters, database) if statement.converters else found
        return list(map(self._row_with_models if self._holds_models else self._row_type._make, converted))

    def row(self, *values: Value) -> Row | None:
        """The first row for these values; None if there is none."""
        return next(iter(self.rows(*values)), None)

    def unconverted_rows(self, *values: Value) -> tuple[Row, ...]:
        """The rows as the database's driver gives them: hashable, so that what is made of them can be cached."""
        database = connections[DEFAULT_DB_ALIAS]
        return tuple(map(self._row_type._make, self._execute(database, self._statement_for(database), values)))

    def convert(self, rows: Iterable[Row]) -> list[Row]:
        """Convert `unconverted_rows` as the ORM would."""
        database = connections[DEFAULT_DB_ALIAS]
        return list(map(self._row_type._make, _converted(rows, self._statement_for(database).converters, database)))

    def _execute(
        self, database: BaseDatabaseWrapper, statement: _Statement, values: Sequence[Value]
    ) -> list[tuple[Any, ...]]:
        if len(values) != len(self._placeholders):
            raise ValueError(f"{len(values)} values for {len(self._placeholders)} placeholders")
        with database.cursor() as cursor:
            cursor.execute(statement.sql, statement.params_with(values))
            found: list[tuple[Any, ...]] = cursor.fetchall()
            return found

    def _row_with_models(self, values: Iterable[Any]) -> Row:
        left = iter(values)
        return self._row_type._make(
            [column.take(left) if isinstance(column, ModelColumns) else next(left) for column in self._columns]
        )

    def _statement_for(self, database: BaseDatabaseWrapper) -> _Statement:
        return self._statements.get(database.vendor) or self._compile(database)

    def _compile(self, database: BaseDatabaseWrapper) -> _Statement:
        flat: list[str | Combinable] = []
        for column in self._columns:
            flat += column.paths if isinstance(column, ModelColumns) else [column]
        rows = self._build(*self._placeholders).values_list(*flat)
        compiler: SQLCompiler = rows.query.get_compiler(connection=database)
        sql, params = compiler.as_sql()
        known = self._placeholders
        places = tuple((place, known.index(param)) for place, param in enumerate(params) if param in known)
        if len({number for _, number in places}) != len(known):
            raise ValueError(f"the placeholders {known} do not all reach the query: {sql}")
        converters = compiler.get_converters([column[0] for column in compiler.select])
        statement = self._statements[database.vendor] = _Statement(sql, tuple(params), places, converters)
        return statement


def _converted(
    rows: Iterable[Iterable[Any]], converters: _Converters, database: BaseDatabaseWrapper
) -> Iterator[list[Any]]:
    for row in rows:
        values = list(row)
        for position, (convert, expression) in converters.items():
            for each in convert:
                values[position] = each(values[position], expression, database)
        yield values
