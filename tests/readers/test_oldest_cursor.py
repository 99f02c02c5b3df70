"""The oldest cursor of all readers and followers of a log: events after it must not be deleted."""

from __future__ import annotations

import pytest

from agents.readers import reading
from agents.readers.holes import Hole
from agents.readers.models import ReaderCursor
from agents.readers.reading import OwnCursor, Reader, find_oldest_cursor
from agents.runs.models import Event, Pass

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def followers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two readers of events with cursors at 90 and 80, a reader of passes at 6, and followers of
    the two logs at 70 and 5."""
    names = (("test", Event), ("late", Event), ("elsewhere", Pass))
    readers = [Reader(name, log, log.objects.all, lambda _: None) for name, log in names]
    monkeypatch.setattr(reading, "READERS", readers)
    monkeypatch.setattr(
        reading, "OWN_CURSORS", [OwnCursor(Event, lambda: 70), OwnCursor(Pass, lambda: 5)]
    )
    for name, position in (("test", 90), ("late", 80), ("elsewhere", 6)):
        ReaderCursor.objects.create(reader=name, position=position)


@pytest.mark.parametrize("last", ["test", "late", ""])
def test_the_oldest_cursor_is_the_lowest_of_all_readers_and_followers(last: str) -> None:
    ReaderCursor.objects.filter(reader=last).update(position=60)
    assert find_oldest_cursor(Event) == (60 if last else 70)
    assert find_oldest_cursor(Pass) == 5


def test_the_oldest_cursor_is_before_holes_whose_rows_may_still_be_committed() -> None:
    holes = [Hole(85, 86, 0.0, ["3/1"]), Hole(41, 43, 0.0, ["3/2"])]
    ReaderCursor.objects.filter(reader="test").update(holes=holes)
    assert find_oldest_cursor(Event) == 40


def test_the_oldest_cursor_is_zero_for_a_reader_that_has_not_begun() -> None:
    ReaderCursor.objects.filter(reader="late").delete()
    assert find_oldest_cursor(Event) == 0
