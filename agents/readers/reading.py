"""Read logs: each reader gets the rows of its log once, in order, within seconds of their commit.

A reader reads a batch, writes the consequences and moves its cursor in one transaction, so a killed
worker neither loses nor repeats anything. The cursor is locked meanwhile, so one worker at a time
reads for each reader.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max, Model, Q, QuerySet

from agents.platform.error_boundary import log_and_continue
from agents.readers.holes import Hole, Writers, find_writers, list_gaps
from agents.readers.models import ReaderCursor
from agents.runs.engine.timing import timing

logger = logging.getLogger(__name__)

AT_ONCE = 200
"""The maximum number of rows that are read in one transaction: on SQLite, other writers wait until
it ends."""
PATIENCE_S = 5.0
"""The number of seconds for which a reader waits for a missing row; if the row appears later, it is
read out of order."""


@dataclass(frozen=True)
class Reader:
    """A reader of a log, which writes the consequences of the log's rows.

    Attributes:
        name: the name of the reader's cursor.
        log: a model whose rows are only added, with ascending ids.
        select: selects the rows that the reader wants, with columns from other tables; other rows
            are skipped.
        write: writes the consequences of some of these rows, in the transaction that moves the
            cursor. A row is repeated only if that transaction was rolled back.
    """

    name: str
    log: type[Model]
    select: Callable[[], QuerySet[Any]]
    write: Callable[[Sequence[Any]], None]


@dataclass(frozen=True)
class OwnCursor:
    """The cursor of code that follows a log without a `Reader`.

    Attributes:
        find: returns the id of the last row that was read or skipped; all later rows are still
            needed.
    """

    log: type[Model]
    find: Callable[[], int]


READERS: list[Reader] = []
"""All readers; each registers itself when its app is ready."""
OWN_CURSORS: list[OwnCursor] = []
"""The cursors of other code that follows a log; each is added when its app is ready."""


def read_logs() -> bool:
    """Read the next rows for each reader; return True if there may be more."""
    has_more = [_read(reader) for reader in READERS]
    return any(has_more)


def find_oldest_unread() -> Iterator[tuple[str, datetime | None]]:
    """Yield each reader's name with the time of the oldest row that it wants and has not read, or
    None if there is no such row."""
    positions = dict(ReaderCursor.objects.values_list("reader", "position"))
    for reader in READERS:
        unread = reader.select().filter(pk__gt=positions.get(reader.name, 0)).order_by("pk")
        yield reader.name, unread.values_list("created_at", flat=True).first()


def find_oldest_cursor(log: type[Model]) -> int:
    """Return the id up to which all readers and other cursors have read this log: rows after it
    must not be deleted.

    A hole is treated as unread, because its rows may still appear. A reader may be up to a batch
    behind if it wants none of the newest rows.

    Raises:
        ValueError: no reader or other cursor follows this log.
    """
    cursors = {cursor.reader: cursor for cursor in ReaderCursor.objects.all()}
    found = [_find_place(cursors.get(reader.name)) for reader in READERS if reader.log is log]
    return min([*found, *(own.find() for own in OWN_CURSORS if own.log is log)])


def _find_place(cursor: ReaderCursor | None) -> int:
    """Return the id before the first row that the reader may still read; 0 if the reader has not
    begun."""
    if cursor is None:
        return 0
    return min([cursor.position, *(Hole(*each).first - 1 for each in cursor.holes)])


def skip_unread() -> None:
    """Let all readers skip everything that is in their logs now."""
    for reader in READERS:
        newest = reader.log._default_manager.aggregate(newest=Max("pk"))["newest"] or 0
        ReaderCursor.objects.update_or_create(
            reader=reader.name, defaults={"position": newest, "holes": []}
        )


def _read(reader: Reader) -> bool:
    """Read the reader's next batch; return True if there may be more rows. A row that cannot be
    read is skipped, so that it does not block the rows after it."""
    has_more = False
    with log_and_continue(f"reading for {reader.name}") as failure:
        has_more = _read_batch(reader, AT_ONCE)
    if not failure.is_failed or failure.outage:
        return has_more
    for _ in range(AT_ONCE):  # row by row, up to the row that fails
        tried = list[int]()
        with log_and_continue(f"reading one row for {reader.name}") as failure:
            _read_batch(reader, 1, tried)
        if failure.is_failed:
            return bool(tried) and not failure.outage and _give_up(reader, tried[0])
    return True


def _read_batch(reader: Reader, most: int, tried: list[int] | None = None) -> bool:
    """Read at most `most` rows in one transaction; return True if there may be more.

    Nothing is locked or written until there is a row that the reader wants, or a whole batch to
    skip.

    Args:
        tried: receives the ids of the rows before they are read.
    """
    cursor, _ = ReaderCursor.objects.get_or_create(reader=reader.name)
    new = list(_list_ids(reader.log, cursor.position)[:most])
    if not cursor.holes and len(new) < most and not reader.select().filter(pk__in=new).exists():
        return False
    with transaction.atomic():
        locked = _lock(reader)
        if locked is None:
            return False
        ids = _advance(locked, reader.log, most)
        if tried is not None:
            tried.extend(ids)
        if ids:
            reader.write(list(reader.select().filter(pk__in=ids).order_by("pk")))
        locked.save()
    return len(ids) >= most


def _give_up(reader: Reader, pk: int) -> bool:
    """Skip this row, unless another worker has read or skipped it; return True, because there may
    be more."""
    with transaction.atomic():
        locked = _lock(reader)
        if locked is not None and _advance(locked, reader.log, 1) == [pk]:
            locked.save()
            logger.error("row %d of %s is given up for %s", pk, reader.log.__name__, reader.name)
    return True


def _lock(reader: Reader) -> ReaderCursor | None:
    """Lock the reader's cursor; return None if another worker is reading for it."""
    cursors = ReaderCursor.objects.select_for_update(skip_locked=True)
    return cursors.filter(reader=reader.name).first()


def _list_ids(log: type[Model], after: int) -> QuerySet[Any, int]:
    return log._default_manager.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)


def _advance(cursor: ReaderCursor, log: type[Model], most: int) -> list[int]:
    """Move the cursor; return the ids of at most `most` rows to read: first the rows that appeared
    late, then the next rows."""
    ahead = _list_ids(log, cursor.position)
    ids = list(ahead[:most])
    if not cursor.holes and not list_gaps(cursor.position, ids):
        cursor.position = max([cursor.position, *ids])
        return ids
    writers = find_writers(log)
    holes = [Hole(*each) for each in cursor.holes]
    passed = [hole for hole in holes if hole.last <= cursor.position]
    late = list(_list_ids(log, 0).filter(_match(passed))[:most]) if passed else []
    pieces = [piece for hole in passed for piece in hole.shrink(late, writers)]
    left = [piece for piece in pieces if piece.writers or len(late) == most]
    if ids:  # read again: missing rows may have been committed before the writers were found
        ids = list(ahead.filter(pk__lte=ids[-1])[: most - len(late)])
        left += [hole for hole in holes if hole.first > max([cursor.position, *ids])]
        gaps = [_describe_gap(gap, holes, writers) for gap in list_gaps(cursor.position, ids)]
        open_gaps = [gap for gap in gaps if gap.writers]
        left += open_gaps
        ids = _cut_before_young(ids, open_gaps, writers.now)
        cursor.position = max([cursor.position, *ids])
    cursor.holes = left
    return late + ids


def _match(holes: Sequence[Hole]) -> Q:
    return Q(*[Q(pk__gte=hole.first, pk__lte=hole.last) for hole in holes], _connector=Q.OR)


def _describe_gap(gap: tuple[int, int], holes: Sequence[Hole], writers: Writers) -> Hole:
    """Return the hole for missing ids after the cursor, with the time and writers of the known hole
    there, if any."""
    first, last = gap
    known = next((hole for hole in holes if hole.first <= first and last <= hole.last), None)
    if known is None:
        return Hole(first, last, writers.now, sorted(writers.ids))
    return Hole(first, last, known.seen_at, sorted(writers.ids.intersection(known.writers)))


def _cut_before_young(ids: list[int], gaps: Sequence[Hole], now: float) -> list[int]:
    """Keep the ids before the first gap that the reader still waits for."""
    patience = PATIENCE_S * timing().scale
    end = next((gap.first for gap in gaps if now - gap.seen_at < patience), None)
    return ids if end is None else [pk for pk in ids if pk < end]
