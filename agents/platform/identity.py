"""Confirms, before a part starts, that it uses the installation's files folder and keys.

The first part that ever starts leaves a mark in the folder, and writes the mark and an encrypted value to the database.
The mark comes first, so a part that finds the row also finds the mark, unless it has another folder.
"""

import hashlib
import logging
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import redis
from django.conf import settings
from django.db import InterfaceError, OperationalError, ProgrammingError, connection
from django.utils.crypto import constant_time_compare, salted_hmac

from agents.accounts.models import AuditEntry
from agents.platform import signatures
from agents.platform.encrypted import Unreadable
from agents.platform.models import Installation
from agents.platform.redis_client import connect_redis
from tools.files.modes import close_to_others, stored_paths

logger = logging.getLogger(__name__)

MARK_FILE = ".gadget-folder"
THE_ONLY_ROW = 1
LOOK_AGAIN_S = 1.0
FIRST_START_S = 3.0
"""The first part to start needs less time between writing the mark and writing the row."""
MEND_FOLDER = "Mount the folder that the other parts use, or accept this one with: python manage.py adopt_folder"
UNFINISHED_RESTORE = "unfinished restore"
"""A mark that no folder has, so that no part starts until everything is settled."""
MEND_RESTORE = (
    "Repeat it: python manage.py restore FILE --force, or python manage.py after_restore if that was cut off."
)
MEND_KEYS = "Use the same keys as the other parts."
OTHER_SECRET_KEY = "SECRET_KEY is not the one of the part that started last."  # noqa: S105 - a sentence
MEND_SECRET_KEY = (
    "Use one SECRET_KEY on every host. "  # noqa: S105 - a sentence
    "If you changed it on purpose, restart the parts that still have the old one."
)


@dataclass(frozen=True)
class Difference:
    """A difference between this part and the installation, and the way to mend it."""

    text: str
    mend: str


class ForeignPartError(Exception):
    """This part belongs to another installation or is configured differently; the text says how."""


def confirm_at_start() -> None:
    """Wait for a migrated database, confirm, and close stored files to other users of the machine.

    A difference ends the process with one sentence and code 1.
    """
    has_waited = False
    while True:
        try:
            confirm()
            break
        except ForeignPartError as error:
            sys.exit(f"Gadget cannot start. {error}")
        except (OperationalError, InterfaceError, ProgrammingError) as error:
            if not has_waited:
                logger.warning("waiting for a migrated database: %s", str(error).strip())
            has_waited = True
            connection.close()
            time.sleep(LOOK_AGAIN_S)
    if note_secret_key():
        logger.warning("%s %s", OTHER_SECRET_KEY, MEND_SECRET_KEY)
    connection.close()
    close_to_others(stored_paths(settings.GADGET_DATA_DIR, settings.GADGET_SQLITE_FILE))


def confirm() -> None:
    """Return if this part belongs to the installation. The very first part founds it.

    Raises:
        ForeignPartError
    """
    if not Installation.objects.exists():
        _found()
    for difference in find_differences():
        raise ForeignPartError(f"{difference.text} {difference.mend}")


def find_differences() -> Iterator[Difference]:
    """Yield each difference; none before the first start."""
    row = Installation.objects.first()
    if row is None:
        return
    mark = read_mark()
    if row.folder_mark == UNFINISHED_RESTORE:
        yield Difference("A restore was not finished.", MEND_RESTORE)
    elif mark != row.folder_mark:
        why = "belongs to another installation or is not shared" if mark else f"has no file {MARK_FILE}"
        yield Difference(f"The files folder {str(settings.GADGET_FILES_DIR)!r} {why}.", MEND_FOLDER)
    if isinstance(row.canary, Unreadable):
        yield Difference("No key in GADGET_ENCRYPTION_KEYS can decrypt this installation's data.", MEND_KEYS)
    newest = AuditEntry.objects.order_by("-pk").values_list("key_id", flat=True).first()
    if newest and not signatures.is_known(newest):
        yield Difference("No key in GADGET_AUDIT_KEYS signed the newest audit entry.", MEND_KEYS)


def note_secret_key() -> bool:
    """Leave a digest of SECRET_KEY in Redis; return True if the part that started before left a different one.

    A different one does not stop the start, because the key may be changed at any time. Nothing is noticed while Redis
    is away.
    """
    place, digest = _digest_secret_key()
    with suppress(redis.RedisError), connect_redis() as client:
        before = client.getset(place, digest)
        return before is not None and not constant_time_compare(before, digest)
    return False


def has_other_secret_key() -> bool:
    """Return True if the part that started last has another SECRET_KEY than this process."""
    place, digest = _digest_secret_key()
    with suppress(redis.RedisError), connect_redis() as client:
        newest = client.get(place)
        return newest is not None and not constant_time_compare(newest, digest)
    return False


def adopt_folder() -> str:
    """Make this files folder the installation's, whatever it held before; return its mark."""
    mark = read_mark() or _leave_mark()
    _write_row(mark)
    Installation.objects.update(folder_mark=mark)
    return mark


def read_mark() -> str:
    """Return the mark in the files folder; empty if there is none."""
    with suppress(FileNotFoundError):
        return Path(settings.GADGET_FILES_DIR, MARK_FILE).read_text(encoding="ascii").strip()
    return ""


def _found() -> None:
    """Leave the mark, then write the row. If several parts do so at once, all end with the same ones."""
    mark = read_mark()
    if mark and _holds_files() and not _row_appears():
        raise ForeignPartError(
            f"The files folder {str(settings.GADGET_FILES_DIR)!r} holds the files of another database. {MEND_FOLDER}"
        )
    _write_row(mark or _leave_mark())


def _row_appears() -> bool:
    """Wait for a part that may just be founding the installation; return True if it has."""
    deadline = time.monotonic() + FIRST_START_S
    while not Installation.objects.exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def _holds_files() -> bool:
    return any(entry.name.isdigit() for entry in os.scandir(settings.GADGET_FILES_DIR))


def _leave_mark() -> str:
    """A hard link appears whole or not at all, so of several parts one wins and all read the same."""
    folder = Path(settings.GADGET_FILES_DIR)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=folder, prefix=f"{MARK_FILE}-")
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(16))
        with suppress(FileExistsError):
            os.link(draft, folder / MARK_FILE)
    finally:
        Path(draft).unlink()
    return read_mark()


def _write_row(mark: str) -> None:
    row = Installation(pk=THE_ONLY_ROW, folder_mark=mark, canary=secrets.token_hex(16))
    Installation.objects.bulk_create([row], ignore_conflicts=True)


def _digest_secret_key() -> tuple[str, str]:
    """Return this installation's place in Redis, and the digest: of a value that only the encryption keys reveal.

    So the digest cannot be used to try keys, and another installation on the same Redis is not compared with this one.
    """
    canary = Installation.objects.values_list("canary", flat=True).first() or ""
    place = hashlib.sha256(canary.encode()).hexdigest()[:16]
    digest = salted_hmac("agents.platform.identity", canary, algorithm="sha256").hexdigest()
    return f"{settings.GADGET_QUEUE}:secret-key:{place}", digest
