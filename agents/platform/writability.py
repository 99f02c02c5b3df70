"""Test whether the database and the files folder accept writes: write something, commit it, and
remove it.

Only a commit proves that writes work: on a full disk, reads and transactions that are rolled back
still succeed.
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

from agents.platform.database_outages import UNREACHABLE, describe_outage
from agents.platform.models import WriteProbe
from agents.platform.refusals import NotMigrated, Unavailable
from agents.platform.schema_version import NotMigratedError, check_migrated
from tools.caches import register

FILLER_BYTES = {"sqlite": 64 * 1024, "postgresql": 8 * 1024}
"""The number of bytes to write: more than fit into the free space inside a database file.
PostgreSQL gets fewer bytes, because it also logs them."""
FILE_BYTES = 64 * 1024
TIMEOUT_S = 1.5
"""The longest wait for a result, in seconds: readiness must be known within two seconds."""
MAX_AGE_S = 1.0
RESTART_AFTER_S = 5.0
"""The number of seconds after which a new check starts beside a check that hangs, because the
connection may have recovered."""
MAX_HANGING = 8
"""The maximum number of threads that may hang in a check. A folder on a lost server may never
respond."""

T = TypeVar("T")


@dataclass(frozen=True)
class Writability:
    """The reasons why the database and the files folder do not accept writes; a reason is None if
    writes are accepted."""

    database: str | None = None
    files: str | None = None


@dataclass(eq=False)
class BackgroundCheck(Generic[T]):
    """Runs a check in a thread of its own, so that a hanging check does not block any caller.

    Attributes:
        fallback: the result that is returned if no check has finished in time.
        max_age_s: the time for which a result is reused.
        timeout_s: the longest wait for a result.
    """

    check: Callable[[], T]
    fallback: T
    max_age_s: float = MAX_AGE_S
    timeout_s: float = TIMEOUT_S
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _result: tuple[float, T] | None = None
    _started_at: float | None = None
    _threads: int = 0

    def __post_init__(self) -> None:
        register(self)

    def start(self) -> None:
        """Start a check, unless there is a fresh result or a check in progress."""
        with self._changed:
            now = time.monotonic()
            is_fresh = self._result is not None and now - self._result[0] < self.max_age_s
            is_open = self._started_at is None or now - self._started_at > RESTART_AFTER_S
            if not is_fresh and is_open and self._threads < MAX_HANGING:
                self._started_at = now
                self._threads += 1
                threading.Thread(
                    target=self._run, args=(now,), name="background-check", daemon=True
                ).start()

    def read(self) -> T:
        """Return the newest result. Wait for it, but no longer than until `timeout_s` after the
        check began."""
        self.start()
        with self._changed:
            started_at = self._started_at
            if started_at is not None:
                left = started_at + self.timeout_s - time.monotonic()
                self._changed.wait_for(lambda: self._started_at != started_at, max(0.0, left))
            if self._result is None or (started_at is not None and self._started_at == started_at):
                return self.fallback
            return self._result[1]

    def clear(self) -> None:
        """Forget the result, and ignore the result of a check in progress. The next use starts a
        new check."""
        with self._changed:
            self._result = self._started_at = None

    def _run(self, started_at: float) -> None:
        result = self.fallback
        try:
            result = self.check()
        finally:
            connection.close()
            with self._changed:
                self._threads -= 1
                if self._started_at == started_at:
                    self._result, self._started_at = (time.monotonic(), result), None
                    self._changed.notify_all()


def check_writability() -> Writability:
    """Test the database and the files folder by writing to them, without a time limit."""
    return Writability(try_database(), try_files())


def try_files() -> str | None:
    """Return the reason why the files folder does not accept writes; None if it does."""
    folder = Path(settings.GADGET_FILES_DIR)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(secrets.token_bytes(FILE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return f"The files folder is not writable: {error.strerror or type(error).__name__}."
    return None


def try_database() -> str | None:
    """Return the reason why the database does not accept writes; None if it does.

    There are two transactions, because only a commit takes space on the disk. The second one also
    removes rows that a crash left behind.
    """
    try:
        with transaction.atomic():
            row = WriteProbe.objects.create(
                filler=secrets.token_bytes(FILLER_BYTES[connection.vendor])
            )
        WriteProbe.objects.filter(pk__lte=row.pk).delete()
    except (DatabaseError, InterfaceError) as error:
        return describe_outage(error) or UNREACHABLE
    return None


def find_condition() -> Unavailable | None:
    """Return a refusal that says why the database cannot be used now; None if it can be used."""
    try:
        check_migrated()
    except NotMigratedError as error:
        return NotMigrated(f"The database is not migrated. {error}")
    except (DatabaseError, InterfaceError) as error:
        return Unavailable(describe_outage(error) or UNREACHABLE)
    reason = try_database()
    return None if reason is None else Unavailable(reason)


DATABASE: BackgroundCheck[Unavailable | None] = BackgroundCheck(
    find_condition, Unavailable(UNREACHABLE)
)
FILES: BackgroundCheck[str | None] = BackgroundCheck(
    try_files, "The files folder does not respond."
)
