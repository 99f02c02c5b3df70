"""Reading a log: each row is read once and in order, late rows are awaited, and no row is lost when
a worker is killed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from agents.notices.models import Notice
from agents.readers import reading
from agents.readers.holes import Hole, list_gaps
from agents.readers.models import ReaderCursor
from agents.readers.reading import Reader, read_logs, skip_unread
from agents.runs.engine.timing import timing
from agents.runs.models import Event, EventType, Run
from tests.features import feature
from tests.workshop import beside, read_everything
from tests.workshop.fixtures import toolbox  # noqa: F401
from tests.world import World, make_world

pytestmark = pytest.mark.django_db(transaction=True)
on_postgresql = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has one writer at a time"
)


class KilledError(BaseException):
    """Raised to simulate a killed worker."""


@pytest.fixture
def world() -> World:
    return make_world()


@pytest.fixture
def run(world: World) -> Run:
    """A run whose existing events have all been read."""
    run = world.run()
    ReaderCursor.objects.create(reader="test", position=add(run))
    run.events.all().delete()
    return run


@pytest.fixture(autouse=True)
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    """The only reader: for each event it writes a notice, which cannot be written twice."""
    only = Reader("test", Event, lambda: Event.objects.exclude(type=EventType.TOOL_PROGRESS), write)
    monkeypatch.setattr(reading, "READERS", [only])
    return only


def write(events: Sequence[Event]) -> None:
    for event in events:
        Notice.objects.create(
            organization_id=event.run.organization_id, key=event.pk, kind="stopped"
        )


def make_failing(bad: int) -> Reader:
    """Make the reader fail at the event with this id."""

    def write_good(events: Sequence[Event]) -> None:
        write([each for each in events if each.pk != bad or 1 / 0])

    return Reader("test", Event, Event.objects.all, write_good)


def add(run: Run, type_: EventType = EventType.RUN_RESUMED) -> int:
    """Add an event to the log; return its id."""
    return int(
        Event.objects.create(run=run, seq=run.events.count() + 1_000, type=type_, payload={}).pk
    )


def list_read() -> list[int]:
    """List the ids of the events that were read, in the order of reading."""
    return [int(key) for key in Notice.objects.order_by("pk").values_list("key", flat=True)]


def read_all() -> list[int]:
    read_everything()
    return list_read()


def list_holes() -> list[tuple[int, int]]:
    return [
        (hole.first, hole.last)
        for hole in (Hole(*each) for each in ReaderCursor.objects.get().holes)
    ]


@contextmanager
def writing(run: Run, count: int = 1) -> Iterator[tuple[list[int], Callable[[str], None]]]:
    """Add events in a transaction that stays open; yield their ids and a function that commits or
    rolls it back."""
    ids, added, may_end, outcome = list[int](), threading.Event(), threading.Event(), [""]

    def write_slowly() -> None:
        with transaction.atomic():
            ids.extend(
                Event.objects.create(run=run, seq=number, type=EventType.RUN_RESUMED, payload={}).pk
                for number in range(1, count + 1)
            )
            added.set()
            assert may_end.wait(60)
            transaction.set_rollback(outcome[0] != "commit")

    with beside(write_slowly) as thread:
        assert added.wait(60)

        def end(how: str) -> None:
            outcome[0] = how
            may_end.set()
            thread.join(60)

        with released_at_the_end(may_end):
            yield ids, end


@contextmanager
def released_at_the_end(may_end: threading.Event) -> Iterator[None]:
    """Let a thread continue after the block, even if the block fails."""
    try:
        yield
    finally:
        may_end.set()


def be_impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the reader continue past holes without waiting for them."""
    monkeypatch.setattr(reading, "PATIENCE_S", 0.0)


class TestReading:
    def test_follows_the_order_of_the_rows_and_reads_each_once(self, run: Run) -> None:
        added = [add(run) for _ in range(3)]
        assert read_all() == added
        assert read_all() == added
        added.append(add(run))
        assert read_all() == added

    def test_keeps_the_order_of_a_backlog_in_batches(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reading, "AT_ONCE", 2)
        added = [add(run) for _ in range(5)]
        counts = [(read_logs(), len(list_read())) for _ in range(4)]
        assert counts == [(True, 2), (True, 4), (False, 5), (False, 5)]
        assert list_read() == added

    def test_skips_rows_that_the_reader_does_not_want(self, run: Run) -> None:
        wanted = [add(run), add(run, EventType.TOOL_PROGRESS), add(run)]
        assert read_all() == [wanted[0], wanted[2]]
        assert ReaderCursor.objects.get().position == wanted[2]

    def test_moves_the_cursor_only_for_a_wanted_row_or_a_whole_batch(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reading, "AT_ONCE", 3)
        before = ReaderCursor.objects.get().position
        added = [add(run, EventType.TOOL_PROGRESS) for _ in range(2)]
        read_all()
        assert ReaderCursor.objects.get().position == before
        added.append(add(run, EventType.TOOL_PROGRESS))
        read_all()
        assert ReaderCursor.objects.get().position == added[-1]

    def test_begins_with_the_first_row_if_there_is_no_cursor(self, run: Run) -> None:
        added = [add(run), add(run)]
        ReaderCursor.objects.all().delete()
        assert read_all() == added

    def test_is_not_delayed_by_deleted_or_rolled_back_rows(self, run: Run) -> None:
        first, removed, last = add(run), add(run), add(run)
        Event.objects.filter(pk=removed).delete()
        assert read_all() == [first, last]
        assert list_holes() == []

    def test_includes_events_of_a_new_organization(self, run: Run, world: World) -> None:
        add(run)
        read_all()
        other = Run.objects.create(
            organization=world.globex, employee=world.others_employee, task="Look"
        )
        added = add(other)
        assert read_all()[-1] == added

    def test_excludes_skipped_rows(self, run: Run) -> None:
        add(run)
        skip_unread()
        assert read_all() == []
        added = add(run)
        assert read_all() == [added]

    def test_is_separate_for_each_reader(
        self, run: Run, reader: Reader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        heard: list[int] = []
        second = Reader(
            "second",
            Event,
            Event.objects.all,
            lambda events: heard.extend(each.pk for each in events),
        )
        added = [add(run)]
        read_all()
        monkeypatch.setattr(reading, "READERS", [reader, second])
        added.append(add(run))
        assert read_all() == heard == added


class TestReadingDespiteFailures:
    @feature(
        "Execution",
        "Readers write what follows from events, each once and in order, although workers are killed",
        "agents/readers/reading.py",
    )
    @pytest.mark.parametrize(
        "step", ["before it writes", "after it wrote", "after it moved the cursor"]
    )
    def test_a_killed_worker_neither_loses_nor_repeats_a_row(
        self, run: Run, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        added = [add(run) for _ in range(3)]

        def fail(*_: object, **__: object) -> None:
            raise KilledError

        def write_and_fail(events: Sequence[Event]) -> None:
            if step != "before it writes":
                write(events)
            fail()

        def save_and_fail(cursor: ReaderCursor, **_: object) -> None:
            save(cursor)
            fail()

        save = ReaderCursor.save
        with monkeypatch.context() as killed:
            if step == "after it moved the cursor":
                killed.setattr(ReaderCursor, "save", save_and_fail)
            else:
                killed.setattr(
                    reading, "READERS", [Reader("test", Event, Event.objects.all, write_and_fail)]
                )
            with pytest.raises(KilledError):
                read_logs()
        assert list_read() == []
        assert read_all() == added

    def test_an_unreadable_row_is_the_only_row_skipped(
        self, run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        first, bad, last = add(run), add(run), add(run)
        monkeypatch.setattr(reading, "READERS", [make_failing(bad)])
        assert read_all() == [first, last]
        assert "ZeroDivisionError" in caplog.text
        assert f"row {bad} of Event is given up for test" in caplog.text

    def test_two_workers_skip_only_an_unreadable_row(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bad, *good = [add(run) for _ in range(3)]
        failing, has_failed = make_failing(bad), list[bool]()
        boundary = logging.getLogger("agents.platform.error_boundary")

        def let_another_worker_fail(record: logging.LogRecord) -> bool:
            if "reading one row" in record.getMessage() and not has_failed:
                has_failed.append(True)
                with beside(lambda: reading._read(failing)):
                    pass
            return True

        monkeypatch.setattr(boundary, "filters", [let_another_worker_fail])
        monkeypatch.setattr(reading, "READERS", [failing])
        assert read_all() == good
        assert has_failed

    @on_postgresql
    def test_an_unreadable_row_beside_a_late_row_is_the_only_row_skipped(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        be_impatient(monkeypatch)
        with writing(run) as (slow, end):
            later = add(run)
            assert read_all() == [later]
            bad, last = add(run), add(run)
            monkeypatch.setattr(reading, "READERS", [make_failing(bad)])
            end("commit")
        assert read_all() == [later, *slow, last]

    def test_a_database_failure_does_not_skip_a_row(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        added = add(run)

        def lose_database(_: Sequence[Any]) -> None:
            raise OperationalError("the connection is lost")

        with monkeypatch.context() as lost:
            lost.setattr(
                reading, "READERS", [Reader("test", Event, Event.objects.all, lose_database)]
            )
            assert not read_logs()
        assert read_all() == [added]


class TestConcurrentReading:
    @on_postgresql  # on SQLite, the second worker waits for the lock
    def test_leaves_the_rows_to_the_worker_that_is_reading(self, run: Run) -> None:
        added = [add(run) for _ in range(3)]
        has_begun, may_end, batches = threading.Event(), threading.Event(), list[list[int]]()

        def write_slowly(events: Sequence[Event]) -> None:
            batches.append([each.pk for each in events])
            has_begun.set()
            if len(batches) == 1:
                assert may_end.wait(60)

        slow = Reader("test", Event, Event.objects.all, write_slowly)
        with beside(lambda: reading._read(slow)), released_at_the_end(may_end):
            assert has_begun.wait(60)
            reading._read(slow)
            assert batches == [added]
        reading._read(slow)
        assert batches == [added]

    def test_reads_each_row_once_with_many_workers(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reading, "AT_ONCE", 3)
        added = [add(run) for _ in range(30)]
        with beside(*[read_all] * 4):
            pass
        assert read_all() == added


@on_postgresql
class TestHoles:
    def test_make_the_reader_wait_for_an_older_transaction(self, run: Run) -> None:
        with writing(run) as (slow, end):
            later = add(run)
            assert read_all() == []
            end("commit")
        assert read_all() == [*slow, later]
        assert list_holes() == []

    def test_do_not_delay_rows_before_them(self, run: Run) -> None:
        first = add(run)
        with writing(run) as (slow, end):
            later = add(run)
            assert read_all() == [first]
            end("commit")
        assert read_all() == [first, *slow, later]

    def test_end_if_their_transaction_is_rolled_back_while_the_reader_waits(self, run: Run) -> None:
        with writing(run) as (_, end):
            later = add(run)
            assert read_all() == []
            end("roll back")
        assert read_all() == [later]
        assert list_holes() == []

    def test_are_remembered_after_five_seconds_and_the_reader_continues(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert reading.PATIENCE_S == 5
        monkeypatch.setattr(reading, "PATIENCE_S", 500.0 / timing().scale)
        with writing(run, 2) as (slow, end):
            later = add(run)
            assert read_all() == []
            age_holes(250)
            assert read_all() == []
            age_holes(251)
            assert read_all() == [later]
            assert list_holes() == [(slow[0], slow[1])]
            end("commit")
        assert read_all() == [later, *slow]
        assert list_holes() == []
        assert read_all() == [later, *slow], "it is read once"

    def test_are_forgotten_if_their_transaction_is_rolled_back_after_the_reader_continued(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        be_impatient(monkeypatch)
        with writing(run) as (_, end):
            later = add(run)
            assert read_all() == [later]
            assert len(list_holes()) == 1
            end("roll back")
        assert read_all() == [later]
        assert list_holes() == []

    def test_are_not_kept_open_by_later_transactions(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        be_impatient(monkeypatch)
        with writing(run) as (_, end):
            add(run)
            read_all()
            with writing(make_other_run(run)) as (_, end_younger):
                end("roll back")
                read_all()
                assert list_holes() == []
                end_younger("roll back")

    def test_are_not_caused_by_a_transaction_that_writes_to_another_table(self, run: Run) -> None:
        has_written, may_end = threading.Event(), threading.Event()

        def write_elsewhere() -> None:
            with transaction.atomic():
                Run.objects.filter(pk=run.pk).update(task="Another")
                has_written.set()
                assert may_end.wait(60)

        other = make_other_run(run)
        with beside(write_elsewhere), released_at_the_end(may_end):
            assert has_written.wait(60)
            removed, last = add(other), add(other)
            Event.objects.filter(pk=removed).delete()
            assert read_all() == [last]

    def test_are_filled_one_by_one(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        be_impatient(monkeypatch)
        others = [make_other_run(run) for _ in range(2)]
        with writing(others[0]) as (first, end_first), writing(others[1]) as (second, end_second):
            later = add(run)
            assert read_all() == [later]
            end_second("commit")
            assert read_all() == [later, *second]
            assert list_holes() == [(first[0], first[0])]
            end_first("commit")
        assert read_all() == [later, *second, *first]

    def test_are_filled_in_batches(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        be_impatient(monkeypatch)
        with writing(run, 5) as (slow, end):
            later = add(run)
            read_all()
            end("commit")
        monkeypatch.setattr(reading, "AT_ONCE", 2)
        assert read_all() == [later, *slow]


def age_holes(seconds: float) -> None:
    """Pretend that each hole was first seen this many seconds earlier."""
    cursor = ReaderCursor.objects.get()
    cursor.holes = [
        [first, last, seen_at - seconds, writers] for first, last, seen_at, writers in cursor.holes
    ]
    cursor.save()


def make_other_run(run: Run) -> Run:
    return Run.objects.create(
        organization_id=run.organization_id, employee_id=run.employee_id, task="Other"
    )


def test_the_gaps_between_ids_are_listed() -> None:
    assert list_gaps(3, [4, 5, 8, 10]) == [(6, 7), (9, 9)]
    assert list_gaps(0, [3]) == [(1, 2)]
    assert list_gaps(3, []) == []
