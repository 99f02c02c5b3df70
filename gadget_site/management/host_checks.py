"""The doctor's checks of this machine: its folders and key files, free space, demo accounts, and
the installation's identity."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from django.conf import settings

from agents.accounts.installation import (
    FIX_SECRET_KEY,
    OTHER_SECRET_KEY,
    find_differences,
    has_other_secret_key,
)
from agents.platform.file_modes import find_open_paths, list_stored_paths
from agents.platform.writability import check_writability
from gadget_site.demo.accounts import FIX, describe, find_open_accounts
from gadget_site.management.findings import Finding

MAX_NAMED = 3
KEY_FILES = (Path(os.sep, "etc", "gadget", "gadget.env"),)
"""The file that the systemd units read; the doctor looks only at its permissions."""
LITTLE_ROOM = 200_000_000


def check_folder() -> Iterator[Finding]:
    """Check that the data folder is writable, and that nobody else can open it or the database."""
    folder = settings.GADGET_DATA_DIR
    if not os.access(folder, os.W_OK):
        yield Finding(
            "folder",
            f"the data folder {str(folder)!r} is not writable",
            "set GADGET_DATA_DIR, or chown",
        )
    exposed = list(find_open_paths(_list_paths()))
    if not exposed:
        yield Finding("folder", f"only its owner can open {str(folder)!r} and the database")
        return
    named = ", ".join(repr(str(path)) for path in islice(exposed, MAX_NAMED))
    more = f" and {len(exposed) - MAX_NAMED} more" if len(exposed) > MAX_NAMED else ""
    found = set(exposed)
    tops = [path for path in exposed if found.isdisjoint(path.parents)]
    fix = f"chmod -R go-rwx {' '.join(shlex.quote(str(path)) for path in tops[:MAX_NAMED])}"
    yield Finding("folder", f"other users of this machine can open {named}{more}", fix)


def check_key_files() -> Iterator[Finding]:
    """Check that this machine's other users cannot read the files in which the guides put keys and
    passwords."""
    places = (*KEY_FILES, settings.BASE_DIR / ".env", settings.BASE_DIR / "deploy" / ".env")
    config = (settings.GADGET_CONFIG_FILE,) if settings.GADGET_CONFIG.services else ()
    for path in (*places, *config):
        if path.is_file() and path.stat().st_mode & stat.S_IROTH:
            text = (
                f"anyone on this machine can read {str(path)!r}, which contains keys or passwords"
            )
            yield Finding("keys", text, f"chmod o= {shlex.quote(str(path))}")


def check_writing() -> Iterator[Finding]:
    """Check that the database and the files folder accept writes, and that enough space is free."""
    found = check_writability()
    if found.database is not None:
        yield Finding(
            "database",
            f"nothing can be saved: {found.database}",
            "free up space, or remove what blocks writing",
        )
    else:
        yield Finding("database", "accepts writes")
    if found.files is not None:
        yield Finding("folder", found.files, "free up space, or check the folder's permissions")
    free = shutil.disk_usage(settings.GADGET_DATA_DIR).free
    if free < LITTLE_ROOM:
        text = f"only {free // 1_000_000} MB are free for {str(settings.GADGET_DATA_DIR)!r}"
        yield Finding("folder", text, "free up space before writes fail")


def check_demo_accounts() -> Iterator[Finding]:
    """If DEBUG is off, check that nobody can log in with the demo's password."""
    if settings.DEBUG:
        return
    if names := find_open_accounts():
        yield Finding("accounts", describe(names), FIX)
    else:
        yield Finding("accounts", "no account has the demo's password")


def check_identity() -> Iterator[Finding]:
    """Check that this process has the same files folder and keys as the installation's other
    processes."""
    differences = list(find_differences())
    for difference in differences:
        yield Finding("identity", difference.text, difference.fix)
    if not differences:
        yield Finding("identity", "the files folder and the keys belong to this database")


def check_secret_key() -> Iterator[Finding]:
    """Check that SECRET_KEY is the one that the most recently started process used."""
    if has_other_secret_key():
        yield Finding("identity", OTHER_SECRET_KEY, FIX_SECRET_KEY)


def _list_paths() -> Iterator[Path]:
    database = settings.GADGET_SQLITE_FILE
    yield from list_stored_paths(settings.GADGET_DATA_DIR, database)
    if database is not None and database.parent != settings.GADGET_DATA_DIR:
        yield database.parent
