"""Tests if the database and the files folder accept writes: it writes something, commits it, and removes it again.

Reads prove nothing: a full disk answers every query, and so does a transaction that is rolled back.
"""

import os
import secrets
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction

from agents.platform.database_condition import LOST, condition_of
from agents.platform.models import WriteProbe

FILLER_BYTES = {"sqlite": 64 * 1024, "postgresql": 8 * 1024}
"""More than the free places of a nearly full database. PostgreSQL's also go to its log, so there are fewer."""
FILE_BYTES = 64 * 1024
PATIENCE_S = 1.5
"""The longest wait for an answer: readiness must be known within two seconds."""
FRESH_S = 1.0
ABANDON_S = 5.0
"""A question unanswered for this long is asked again: it may hang on a link that works again by now."""
MOST_HANGING = 8
"""Threads that may wait for one answer; a folder on a lost server may never give one."""

T = TypeVar("T")


@dataclass(frozen=True)
class Writability:
    """The faults of writing, a sentence each; empty if there are none."""

    database: str = ""
    files: str = ""


@dataclass
class Watch(Generic[T]):
    """Asks in its own thread, one question at a time, so that a hanging question blocks no caller.

    Attributes:
        silent: the answer while there is none.
        fresh_s: the time for which an answer counts.
        patience_s: the longest wait for an answer.
    """

    ask: Callable[[], T]
    silent: T
    fresh_s: float = FRESH_S
    patience_s: float = PATIENCE_S
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _answer: tuple[float, T] | None = None
    _asked_at: float | None = None
    _threads: int = 0

    def start(self) -> None:
        """Ask, unless there is a fresh answer or a question in progress."""
        with self._changed:
            now = time.monotonic()
            is_fresh = self._answer is not None and now - self._answer[0] < self.fresh_s
            is_open = self._asked_at is None or now - self._asked_at > ABANDON_S
            if not is_fresh and is_open and self._threads < MOST_HANGING:
                self._asked_at = now
                self._threads += 1
                threading.Thread(target=self._run, args=(now,), name="watch", daemon=True).start()

    def look(self) -> T:
        """Return the newest answer, waiting for it until `patience_s` after it was asked for."""
        self.start()
        with self._changed:
            asked_at = self._asked_at
            if asked_at is not None:
                left = asked_at + self.patience_s - time.monotonic()
                self._changed.wait_for(lambda: self._asked_at != asked_at, max(0.0, left))
            if self._answer is None or (asked_at is not None and self._asked_at == asked_at):
                return self.silent
            return self._answer[1]

    def forget(self) -> None:
        """Ask again next time, and ignore an answer that is still on its way."""
        with self._changed:
            self._answer = self._asked_at = None

    def _run(self, asked_at: float) -> None:
        answer = self.silent
        try:
            answer = self.ask()
        finally:
            connection.close()
            with self._changed:
                self._threads -= 1
                if self._asked_at == asked_at:
                    self._answer, self._asked_at = (time.monotonic(), answer), None
                    self._changed.notify_all()


def look_now() -> Writability:
    """Write to both and wait as long as it takes."""
    return Writability(try_database(), try_files())


def try_files() -> str:
    """Return why the files folder accepts no writes; empty if it does."""
    folder = Path(settings.GADGET_FILES_DIR)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(secrets.token_bytes(FILE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return f"The files folder cannot be written: {error.strerror or type(error).__name__}."
    return ""


def try_database() -> str:
    """Return why the database accepts no writes; empty if it does.

    Writes in two transactions, because only a commit takes room; the second also removes rows left by a crash.
    """
    try:
        with transaction.atomic():
            row = WriteProbe.objects.create(filler=secrets.token_bytes(FILLER_BYTES[connection.vendor]))
        WriteProbe.objects.filter(pk__lte=row.pk).delete()
    except (DatabaseError, InterfaceError) as error:
        return condition_of(error) or LOST
    return ""


DATABASE = Watch(try_database, LOST)
FILES = Watch(try_files, "The folder of files does not answer.")
