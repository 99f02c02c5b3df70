"""Check at the start of each process that it uses the installation's files folder and keys.

The first process that ever starts writes an id into the folder, then the id and an encrypted value
to the database. It writes to the folder first, so a process that finds the row in the database also
finds the id in the folder, unless it uses a different folder.
"""

import hashlib
import logging
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import redis
from django.conf import settings
from django.db import InterfaceError, OperationalError, ProgrammingError, connection
from django.utils.crypto import constant_time_compare, salted_hmac

from agents.accounts.models import AuditEntry
from agents.platform import signatures
from agents.platform.database_outages import describe_outage
from agents.platform.database_server import RETRY_S, WaitingLine, try_connecting
from agents.platform.encrypted_fields import UndecryptableText
from agents.platform.file_modes import close_to_others, list_stored_paths
from agents.platform.models import Installation
from agents.platform.redis_client import connect_redis
from agents.platform.schema_version import (
    NotMigratedError,
    WrongSchemaError,
    check_migrated,
    check_schema,
)

logger = logging.getLogger(__name__)

ID_FILE = ".gadget-folder"
ONLY_ROW_ID = 1
FIRST_START_S = 3.0
"""The number of seconds to wait for the first process. It must exceed the time between that
process's two steps: writing the folder's id and writing the row."""
FIX_FOLDER = "Mount the folder that the other processes use, or accept this one with: python manage.py adopt_folder"
UNFINISHED_RESTORE = "unfinished restore"
"""The value stored in place of the folder's id during a restore. No folder has this id, so no
process starts."""
FIX_RESTORE = (
    "Repeat it: python manage.py restore FILE --force. "
    "If after_restore was interrupted, run: python manage.py after_restore."
)
FIX_KEYS = "Use the same keys as the other processes."
OTHER_SECRET_KEY = "SECRET_KEY differs from that of the process that started last."  # noqa: S105 - a sentence
FIX_SECRET_KEY = (
    "Use one SECRET_KEY on every host. "  # noqa: S105 - a sentence
    "If you changed it on purpose, restart the processes that still have the old one."
)


@dataclass(frozen=True)
class Difference:
    """A difference between this process and the installation, and how to fix it."""

    text: str
    fix: str


class WrongInstallationError(Exception):
    """The process belongs to another installation or is configured differently; the text explains
    the difference."""


def confirm_at_start(is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Wait for a migrated database, check the installation, and make stored files inaccessible to
    the machine's other users.

    If the check finds a difference, the process ends with one sentence and exit code 1.
    """
    line = WaitingLine()
    try:
        while not try_to_confirm(line) and not is_stopping():
            time.sleep(RETRY_S)
    except WrongInstallationError as error:
        sys.exit(f"Gadget cannot start. {error}")


def try_to_confirm(line: WaitingLine) -> bool:
    """Check the installation once; return False, and log the reason, if the database is not ready.

    Raises:
        WrongInstallationError
    """
    if refusal := try_connecting():
        line.say_no_server(refusal)
        return False
    try:
        confirm()
    except NotMigratedError as error:
        line.say("migrations", f"Waiting for a migrated database. {error}")
        return False
    except (OperationalError, InterfaceError, ProgrammingError) as error:
        line.say(
            "database", f"Waiting for the database. {describe_outage(error) or str(error).strip()}"
        )
        return False
    finally:
        connection.close()
    if record_secret_key():
        logger.warning("%s %s", OTHER_SECRET_KEY, FIX_SECRET_KEY)
    connection.close()
    close_to_others(list_stored_paths(settings.GADGET_DATA_DIR, settings.GADGET_SQLITE_FILE))
    return True


def confirm() -> None:
    """Check that this process belongs to the installation; create the installation if there is none
    yet.

    Raises:
        WrongInstallationError
        NotMigratedError
    """
    try:
        check_schema()
    except WrongSchemaError as error:
        raise WrongInstallationError(str(error)) from error
    check_migrated()
    if not Installation.objects.exists():
        _create_installation()
    for difference in find_differences():
        raise WrongInstallationError(f"{difference.text} {difference.fix}")


def find_differences() -> Iterator[Difference]:
    """Yield each difference between this process and the installation; yield none before the first
    start."""
    row = Installation.objects.first()
    if row is None:
        return
    folder_id = read_folder_id()
    if row.folder_mark == UNFINISHED_RESTORE:
        yield Difference("A restore was not finished.", FIX_RESTORE)
    elif folder_id != row.folder_mark:
        why = (
            "belongs to another installation or is not shared"
            if folder_id
            else f"has no file {ID_FILE}"
        )
        yield Difference(f"The files folder {str(settings.GADGET_FILES_DIR)!r} {why}.", FIX_FOLDER)
    if isinstance(row.canary, UndecryptableText):
        yield Difference(
            "No key in GADGET_ENCRYPTION_KEYS can decrypt this installation's data.", FIX_KEYS
        )
    newest = AuditEntry.objects.order_by("-pk").values_list("key_id", flat=True).first()
    if newest and not signatures.is_known(newest):
        yield Difference("No key in GADGET_AUDIT_KEYS signed the newest audit entry.", FIX_KEYS)


def record_secret_key() -> bool:
    """Write a digest of SECRET_KEY to Redis; return True if the process that started before this
    one wrote a different digest.

    A different key does not prevent the start, because SECRET_KEY may be changed at any time. While
    Redis is unavailable, a difference is not noticed.
    """
    redis_key, digest = _digest_secret_key()
    with suppress(redis.RedisError), connect_redis() as client:
        before = client.getset(redis_key, digest)
        return before is not None and not constant_time_compare(before, digest)
    return False


def has_other_secret_key() -> bool:
    """Return True if the process that started last has a different SECRET_KEY; False while Redis is
    unavailable."""
    redis_key, digest = _digest_secret_key()
    with suppress(redis.RedisError), connect_redis() as client:
        newest = client.get(redis_key)
        return newest is not None and not constant_time_compare(newest, digest)
    return False


def adopt_folder() -> str:
    """Make this files folder the installation's folder, replacing any earlier one; return the
    folder's id."""
    folder_id = read_folder_id() or _create_folder_id()
    _write_row(folder_id)
    Installation.objects.update(folder_mark=folder_id)
    return folder_id


def read_folder_id() -> str:
    """Return the id in the files folder; empty if there is none."""
    with suppress(FileNotFoundError):
        return Path(settings.GADGET_FILES_DIR, ID_FILE).read_text(encoding="ascii").strip()
    return ""


def _create_installation() -> None:
    """Write the folder's id, then the row. If several processes do this at the same time, the first
    one wins."""
    folder_id = read_folder_id()
    if folder_id and _holds_files() and not _wait_for_row():
        raise WrongInstallationError(
            f"The files folder {str(settings.GADGET_FILES_DIR)!r} holds the files of another database. {FIX_FOLDER}"
        )
    _write_row(folder_id or _create_folder_id())


def _wait_for_row() -> bool:
    """Wait for a process that may be creating the installation; return True if the row appears."""
    deadline = time.monotonic() + FIRST_START_S
    while not Installation.objects.exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def _holds_files() -> bool:
    return any(entry.name.isdigit() for entry in os.scandir(settings.GADGET_FILES_DIR))


def _create_folder_id() -> str:
    """Create the folder's id and return it.

    A hard link is atomic, so one of several processes wins, and all read the same id.
    """
    folder = Path(settings.GADGET_FILES_DIR)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=f"{ID_FILE}-")
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(16))
        with suppress(FileExistsError):
            os.link(temporary, folder / ID_FILE)
    finally:
        Path(temporary).unlink()
    return read_folder_id()


def _write_row(folder_id: str) -> None:
    row = Installation(pk=ONLY_ROW_ID, folder_mark=folder_id, canary=secrets.token_hex(16))
    Installation.objects.bulk_create([row], ignore_conflicts=True)


def _digest_secret_key() -> tuple[str, str]:
    """Return the Redis key for this installation, and the digest of SECRET_KEY.

    Both are derived from a value that only the encryption keys reveal. So the digest cannot be used
    to guess keys, and different installations on the same Redis are never compared.
    """
    canary = Installation.objects.values_list("canary", flat=True).first() or ""
    redis_key = hashlib.sha256(canary.encode()).hexdigest()[:16]
    digest = salted_hmac("agents.accounts.installation", canary, algorithm="sha256").hexdigest()
    return f"{settings.GADGET_QUEUE}:secret-key:{redis_key}", digest
