"""The database statements of a run in this process, each with its duration."""

from __future__ import annotations

import logging
import re
import statistics
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

from django.db import connection
from django.test.utils import CaptureQueriesContext

TRANSACTION_WORDS = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")
_PASS_IS_RECORDED = "INSERT pass"
_APPS = "accounts|employees|runs|approvals|insight|auth|records"
_TABLE = re.compile(rf'(?:FROM|JOIN|INTO|UPDATE) "?(?!ROWS\b|jsonb_)(?:(?:{_APPS})_)?(\w+)"?')


@dataclass(frozen=True)
class Statement:
    """One statement: its kind and tables, and the seconds until its result arrived."""

    shape: str
    seconds: float

    @property
    def is_query(self) -> bool:
        return not self.shape.startswith(TRANSACTION_WORDS)


class _Listener(logging.Handler):
    """Collects the statements that Django logs, with exact durations, while queries are
    captured."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.heard: list[Statement] = []

    def emit(self, record: logging.LogRecord) -> None:
        said = record.__dict__
        self.heard.append(Statement(_shape_of(said["sql"] or ""), said["duration"]))


@contextmanager
def listened() -> Iterator[list[Statement]]:
    """Yield the list of this thread's statements, which grows while the block runs."""
    logger = logging.getLogger("django.db.backends")
    listener = _Listener()
    level, passes_on = logger.level, logger.propagate
    logger.addHandler(listener)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        with CaptureQueriesContext(connection):
            yield listener.heard
    finally:
        logger.removeHandler(listener)
        logger.setLevel(level)
        logger.propagate = passes_on


def split_passes(statements: list[Statement]) -> list[list[Statement]]:
    """Split the statements into complete passes. Each pass begins when the run is loaded and ends
    when its calls' results are committed."""
    recorded = [place for place, each in enumerate(statements) if each.shape == _PASS_IS_RECORDED]
    return [_from_the_load(statements[here:there]) for here, there in pairwise(recorded)]


def _from_the_load(cycle: list[Statement]) -> list[Statement]:
    """Rotate the statements between two recorded passes, so that the statements after the last
    commit come first."""
    place = max(place for place, each in enumerate(cycle) if each.shape == "COMMIT") + 1
    return cycle[place:] + cycle[:place]


def usual_pass(passes: list[list[Statement]]) -> list[Statement]:
    """Return the most common sequence of statements, each with its median duration."""
    shapes = Counter(tuple(each.shape for each in one) for one in passes)
    usual = shapes.most_common(1)[0][0]
    alike = [one for one in passes if tuple(each.shape for each in one) == usual]
    return [
        Statement(shape, statistics.median(one[place].seconds for one in alike))
        for place, shape in enumerate(usual)
    ]


def _shape_of(sql: str) -> str:
    many = "many of " if re.match(r"\d+ times: ", sql) else ""
    bare = re.sub(r"^\d+ times: ", "", sql).lstrip("( ")
    verb = bare.split(" ", 1)[0].upper()
    if verb in TRANSACTION_WORDS:
        return verb
    tables = list(dict.fromkeys(_TABLE.findall(bare)))
    locks = " FOR UPDATE" if " FOR " in bare and "UPDATE" in bare.rsplit(" FOR ", 1)[1] else ""
    return f"{many}{verb} {'+'.join(tables)}{locks}".strip()
