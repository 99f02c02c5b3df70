"""The time that each compiled query saves in its callers, compared with the plain ORM."""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.expressions import Combinable

from agents.platform.queries.compiled import CompiledQuery, ModelColumns
from agents.web.panel.run_state import read_state
from tests.bench.figures import Figure, figure
from tests.bench.paired_child import build_acts, build_acts_beside_runs
from tests.workshop import build_workshop

AnyQuery = CompiledQuery[Any]
Use = tuple[AnyQuery, tuple[Any, ...]]
ROUNDS = 3
WARM_UP = 3


def shares() -> list[Figure]:
    """Measure, in percent, how much slower each action would be if it used the plain ORM instead of
    one of its compiled queries."""
    logging.disable(logging.WARNING)
    acts = build_acts(build_workshop()) | build_acts_beside_runs(build_workshop("crowd"))
    acts["state of a run for a browser"] = lambda: read_state(1)
    figures = []
    for act, do in acts.items():
        for _ in range(WARM_UP):
            do()
        with _recorded() as uses:
            do()
        whole_ms = _measure(do, 4)
        counts = Counter(query for query, _ in uses)
        more = {
            query: count * _measure_orm(query, dict(uses)[query]) for query, count in counts.items()
        }
        names = _find_names()
        for query in sorted(more, key=lambda query: -more[query]):
            name = f"{act}: {counts[query]} × {names[id(query)]}"  # noqa: RUF001
            figures.append(figure(name, "%", [100 * more[query] / whole_ms]))
    return figures


@contextmanager
def _recorded() -> Iterator[list[Use]]:
    """Record each use of a compiled query, with its values, in the list that is yielded."""
    uses: list[Use] = []
    fetch_all = CompiledQuery.fetch_all

    def record(query: AnyQuery, *values: Any) -> list[Any]:
        uses.append((query, values))
        return fetch_all(query, *values)

    CompiledQuery.fetch_all = record  # type: ignore[method-assign, assignment]
    try:
        yield uses
    finally:
        CompiledQuery.fetch_all = fetch_all  # type: ignore[method-assign]


def _measure(do: Callable[[], object], times: int) -> float:
    """Return the processor time of one call in milliseconds: the minimum of several rounds, because
    other work slows some of them."""
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(times):
            do()
        taken.append(1000 * (time.process_time() - began) / times)
    return min(taken)


def _measure_orm(query: AnyQuery, values: tuple[Any, ...]) -> float:
    """Return the additional milliseconds that the query takes if the plain ORM runs it."""
    with transaction.atomic():
        return _measure(lambda: list(_build_plain(query, values)), 50) - _measure(
            lambda: query.fetch_all(*values), 50
        )


def _build_plain(query: AnyQuery, values: tuple[Any, ...]) -> QuerySet[Any]:
    """Build the same query for the plain ORM: it loads related rows with `select_related`, and
    other values as columns."""
    rows: QuerySet[Any] = query._build(*values)
    columns = dict(zip(query._row_type._fields, query._columns, strict=True))
    models = [column for column in columns.values() if isinstance(column, ModelColumns)]
    found = {
        name: F(each) if isinstance(each, str) else each
        for name, each in columns.items()
        if each not in models
    }
    if not models:
        return rows.values_list(
            *(each if isinstance(each, str) else found[name] for name, each in columns.items())
        )
    related = [column.prefix.removesuffix("__") for column in models if column.prefix]
    added = {f"_{name}": each for name, each in found.items() if isinstance(each, Combinable)}
    rows = rows.select_related(*related).annotate(**added)
    return rows.only(*models[0].names) if models[0].only else rows


def _find_names() -> dict[int, str]:
    """Find the names of the compiled queries, by `id()`."""
    found: dict[int, str] = {}
    for module in [module for name, module in sys.modules.items() if name.startswith("agents.")]:
        for name, value in vars(module).items():
            for number, each in enumerate(value if isinstance(value, tuple) else [value]):
                if isinstance(each, CompiledQuery):
                    found.setdefault(
                        id(each), f"{name}[{number}]" if isinstance(value, tuple) else name
                    )
    return found
