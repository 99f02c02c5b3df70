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

from .folder import RESERVED, Entry, check_ordinary, check_way, entry_at, is_empty, no_file, opened, tree_of
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
        ToolError: NOT_FOUND, LIMIT_EXCEEDED, OPERATION_NOT_ALLOWED, INVALID_OPERATION, OPERATION_FAILED; nothing was
            changed.
    """
    with changing(organization_id) as top:
        replaced = _replaceable(organization_id, names)
        room = _room(organization_id, names, replaced)
        temporary = f"{RESERVED}{secrets.token_hex(8)}"
        try:
            size, sha256 = _stage(top, temporary, parts, room)
            staged = Staged(size, sha256, replaced)
            with _made(organization_id, names[:-1]) as folder:
                agree(staged)
                _put(names, folder, top, temporary)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=top)
        return staged


def check_writable(organization_id: int, names: Names, size: int) -> None:
    """Refuse what `write_file` would refuse as things stand.

    Raises:
        ToolError: NOT_FOUND, LIMIT_EXCEEDED, OPERATION_NOT_ALLOWED, INVALID_OPERATION
    """
    replaced = _replaceable(organization_id, names)
    _check_size(size, _room(organization_id, names, replaced))


def doomed_at(organization_id: int, names: Names) -> tuple[Entry, ...]:
    """What a deletion would take: the file, or all files and empty folders of the folder.

    Raises:
        ToolError: NOT_FOUND, LIMIT_EXCEEDED, OPERATION_FAILED
    """
    entry = entry_at(organization_id, names)
    if entry is None:
        raise no_file(names)
    if not entry.is_folder:
        return (entry,)
    held = tree_of(organization_id, names).entries
    filled = {one.names[:-1] for one in held}
    ends = [one for one in held if one.names not in filled] or [entry]
    doomed = tuple(one for one in ends if not one.is_folder or is_empty(organization_id, one.names))
    if not doomed:
        raise _not_deleted(names, "it holds only things that stay, such as links and devices")
    if len(doomed) > MOST_DELETED:
        raise _too_much(f"{quoted(path_of(names))} holds {len(doomed):,} files, and {MOST_DELETED:,} can go at once")
    return doomed


def delete(organization_id: int, names: Names, agree: Callable[[tuple[Entry, ...]], None]) -> tuple[Entry, ...]:
    """Delete a file, or a folder with all that it holds; links and devices in it stay, and so do their folders.

    Returns what really went.

    Args:
        agree: called with what would be lost; whatever it raises leaves everything as it was.

    Raises:
        ToolError: NOT_FOUND, LIMIT_EXCEEDED, OPERATION_FAILED; nothing was changed.
            OUTCOME_UNKNOWN; some of it was deleted.
    """
    with changing(organization_id):
        doomed = doomed_at(organization_id, names)
        agree(doomed)
        _unlink(organization_id, names, [entry for entry in doomed if not entry.is_folder])
        ways = (entry.names if entry.is_folder else entry.names[:-1] for entry in doomed)
        emptied = {way[:depth] for way in ways for depth in range(len(names), len(way) + 1)}
        removed = {way for way in sorted(emptied, key=len, reverse=True) if _is_removed(organization_id, way)}
        gone = tuple(entry for entry in doomed if not entry.is_folder or entry.names in removed)
        if not gone:
            raise _not_deleted(names, "something was put into it in this moment, or the disk refused it")
    return gone


def _unlink(organization_id: int, names: Names, files: list[Entry]) -> None:
    """Delete one after the other; from the first on, a failure is no longer one that changed nothing."""
    for done, entry in enumerate(files):
        try:
            with opened(organization_id, entry.names[:-1]) as folder:
                os.unlink(entry.name, dir_fd=folder)
        except (ToolError, OSError) as error:
            why = error.message if isinstance(error, ToolError) else f"the disk refused it: {error.strerror}"
            if not done:
                raise _not_deleted(names, why.rstrip(".")) from error
            message = f"Only {done:,} of {len(files):,} files in {quoted(path_of(names))} were deleted; it stopped."
            raise ToolError(ErrorCode.OUTCOME_UNKNOWN, message) from error


def _is_removed(organization_id: int, way: Names) -> bool:
    try:
        with opened(organization_id, way[:-1]) as folder:
            os.rmdir(way[-1], dir_fd=folder)
    except (ToolError, OSError):
        return False
    return True


@contextmanager
def changing(organization_id: int) -> Iterator[int]:
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
    """The file that stands in this place; None if nothing does, and it can be put there."""
    check_way(organization_id, names)
    entry = entry_at(organization_id, names)
    if entry is not None and entry.is_folder:
        message = f"{quoted(path_of(names))} is a folder."
        raise ToolError(ErrorCode.INVALID_OPERATION, message, parameter="path", attempted=False)
    return entry


def _room(organization_id: int, names: Names, replaced: Entry | None) -> int:
    """How many bytes there may be in this place; refuses if there are too many files."""
    held = tree_of(organization_id).entries
    if replaced is None and len(held) + len(names) > MOST_FILES:
        raise _too_much(f"Your organisation has {len(held):,} files and folders, and {MOST_FILES:,} are possible")
    return MOST_BYTES - sum(entry.size for entry in held) + (replaced.size if replaced else 0)


def _check_size(size: int, room: int) -> None:
    if size > LARGEST_FILE:
        raise _too_much(f"The file is larger than {LARGEST_FILE // 1_000_000} MB")
    if size > room:
        raise _too_much(f"Your organisation's files would take more than {MOST_BYTES // 10**9} GB")


def _stage(top: int, temporary: str, parts: Iterable[bytes], room: int) -> tuple[int, str]:
    """Write the parts and wait until they are on the disk; returns size and hash."""
    hashed, size = hashlib.sha256(), 0
    try:
        with os.fdopen(os.open(temporary, _NEW, 0o600, dir_fd=top), "wb") as file:
            for part in parts:
                size += len(part)
                _check_size(size, room)
                hashed.update(part)
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        message = f"The disk refused it: {error.strerror or type(error).__name__}."
        raise ToolError(ErrorCode.OPERATION_FAILED, message, attempted=False) from error
    return size, hashed.hexdigest()


@contextmanager
def _made(organization_id: int, way: Names) -> Iterator[int]:
    """The folder, made if it is missing; what was made and is still empty afterwards goes again."""
    depths = range(1, len(way) + 1)
    missing = [way[:depth] for depth in depths if entry_at(organization_id, way[:depth]) is None]
    try:
        with opened(organization_id, way, make=True) as folder:
            yield folder
    finally:
        for made in reversed(missing):
            _is_removed(organization_id, made)


def _put(names: Names, folder: int, top: int, temporary: str) -> None:
    """Move the new content into its place; it is there whole or not at all."""
    with suppress(FileNotFoundError):
        check_ordinary(names, os.stat(names[-1], dir_fd=folder, follow_symlinks=False))
    os.rename(temporary, names[-1], src_dir_fd=top, dst_dir_fd=folder)
    os.fsync(folder)


def _not_deleted(names: Names, why: str) -> ToolError:
    message = f"Nothing of {quoted(path_of(names))} was deleted: {why}."
    return ToolError(ErrorCode.OPERATION_FAILED, message, attempted=False)


def _too_much(sentence: str) -> ToolError:
    return ToolError(ErrorCode.LIMIT_EXCEEDED, f"{sentence}.", attempted=False)
