"""Writing and deleting: one writer of an organisation's folder at a time, and never half a file."""

import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from tools.contract import ErrorCode, ToolError

from .folder import RESERVED, Entry, check_ordinary, entry_at, no_file, opened, tree_of
from .paths import Names, path_of, quoted

MOST_FILES = 10_000
MOST_BYTES = 1_000_000_000
LARGEST_FILE = 20_000_000
MOST_DELETED = 1_000

_PATIENCE_S = 10.0
_LOOK_AGAIN_S = 0.02
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Staged:
    """A new content that is safe on the disk, but not in its place yet; `replaces` is what it would replace."""

    size: int
    sha256: str
    replaces: Entry | None


def write_file(organization_id: int, names: Names, parts: Iterable[bytes], agree: Callable[[Staged], None]) -> Staged:
    """Create or replace a file as a whole, making the folders on its way.

    Args:
        agree: called when only the last step is left; whatever it raises leaves everything as it was.

    Raises:
        ToolError: LIMIT_EXCEEDED, OPERATION_NOT_ALLOWED, INVALID_OPERATION, OPERATION_FAILED; nothing was changed.
    """
    with _changing(organization_id) as top:
        replaced = _replaceable(organization_id, names)
        held = tree_of(organization_id).entries
        if replaced is None and len(held) + len(names) > MOST_FILES:
            raise _too_much(f"Your organisation has {len(held):,} files and folders, and {MOST_FILES:,} are possible")
        room = MOST_BYTES - sum(entry.size for entry in held) + (replaced.size if replaced else 0)
        temporary = f"{RESERVED}{secrets.token_hex(8)}"
        try:
            size, sha256 = _stage(top, temporary, parts, room)
            staged = Staged(size, sha256, replaced)
            agree(staged)
            _put(organization_id, names, top, temporary)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=top)
        return staged


def doomed_at(organization_id: int, names: Names) -> tuple[Entry, ...]:
    """What a deletion would take: the file, or all files and empty folders of the folder.

    Raises:
        ToolError: NOT_FOUND, LIMIT_EXCEEDED
    """
    entry = entry_at(organization_id, names)
    if entry is None:
        raise no_file(names)
    if not entry.is_folder:
        return (entry,)
    held = tree_of(organization_id, names).entries
    filled = {one.names[:-1] for one in held}
    doomed = tuple(one for one in held if one.names not in filled) or (entry,)
    if len(doomed) > MOST_DELETED:
        raise _too_much(f"{quoted(path_of(names))} holds {len(doomed):,} files, and {MOST_DELETED:,} can go at once")
    return doomed


def delete(organization_id: int, names: Names, agree: Callable[[tuple[Entry, ...]], None]) -> tuple[Entry, ...]:
    """Delete a file, or a folder with all that it holds; links and devices in it stay, and so do their folders.

    Args:
        agree: called with what would be lost; whatever it raises leaves everything as it was.

    Raises:
        ToolError: NOT_FOUND, LIMIT_EXCEEDED, OPERATION_FAILED; nothing was changed.
    """
    with _changing(organization_id):
        doomed = doomed_at(organization_id, names)
        agree(doomed)
        for entry in doomed:
            if not entry.is_folder:
                with opened(organization_id, entry.names[:-1]) as folder:
                    os.unlink(entry.name, dir_fd=folder)
        ways = (entry.names if entry.is_folder else entry.names[:-1] for entry in doomed)
        emptied = {way[:depth] for way in ways for depth in range(len(names), len(way) + 1)}
        for way in sorted(emptied, key=len, reverse=True):
            with suppress(ToolError, OSError), opened(organization_id, way[:-1]) as folder:
                os.rmdir(way[-1], dir_fd=folder)
    return doomed


@contextmanager
def _changing(organization_id: int) -> Iterator[int]:
    """The organisation's folder, locked against other writers; what a killed one left half-written is gone."""
    with opened(organization_id) as top:
        deadline = time.monotonic() + _PATIENCE_S
        while not _locked(top):
            if time.monotonic() > deadline:
                raise ToolError(ErrorCode.OPERATION_FAILED, "The folder is busy; try again later.", attempted=False)
            time.sleep(_LOOK_AGAIN_S)
        _tidy(top)
        yield top


def _tidy(top: int) -> None:
    with os.scandir(top) as found:
        left = [one.name for one in found if one.name.startswith(RESERVED)]
    for name in left:
        with suppress(OSError):
            os.unlink(name, dir_fd=top)


def _locked(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _replaceable(organization_id: int, names: Names) -> Entry | None:
    """The file that stands in this place; None if nothing does."""
    entry = entry_at(organization_id, names)
    if entry is not None and entry.is_folder:
        message = f"{quoted(path_of(names))} is a folder."
        raise ToolError(ErrorCode.INVALID_OPERATION, message, parameter="path", attempted=False)
    return entry


def _stage(top: int, temporary: str, parts: Iterable[bytes], room: int) -> tuple[int, str]:
    """Write the parts and wait until they are on the disk; returns size and hash."""
    hashed, size = hashlib.sha256(), 0
    try:
        with os.fdopen(os.open(temporary, _NEW, 0o600, dir_fd=top), "wb") as file:
            for part in parts:
                size += len(part)
                if size > LARGEST_FILE:
                    raise _too_much(f"The file is larger than {LARGEST_FILE // 1_000_000} MB")
                if size > room:
                    raise _too_much(f"Your organisation's files would take more than {MOST_BYTES // 10**9} GB")
                hashed.update(part)
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        message = f"The disk refused it: {error.strerror or type(error).__name__}."
        raise ToolError(ErrorCode.OPERATION_FAILED, message, attempted=False) from error
    return size, hashed.hexdigest()


def _put(organization_id: int, names: Names, top: int, temporary: str) -> None:
    """Move the new content into its place; it is there whole or not at all."""
    with opened(organization_id, names[:-1], make=True) as folder:
        with suppress(FileNotFoundError):
            check_ordinary(names, os.stat(names[-1], dir_fd=folder, follow_symlinks=False))
        os.rename(temporary, names[-1], src_dir_fd=top, dst_dir_fd=folder)
        os.fsync(folder)


def _too_much(sentence: str) -> ToolError:
    return ToolError(ErrorCode.LIMIT_EXCEEDED, f"{sentence}.", attempted=False)
