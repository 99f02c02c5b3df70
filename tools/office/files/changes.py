"""Writing and deleting files: one writer at a time per organization, and no partial files."""

import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from tools.contract import ErrorCode, ToolError
from tools.office.files.folder import (
    build_missing_file_error,
    check_ordinary,
    check_parents,
    find_entry,
    is_empty,
    list_tree,
    open_folder,
)
from tools.office.files.paths import quote_path
from tools.registries.files import RESERVED, FolderEntry, Names, StagedFile, join_path

MAX_FILES = 10_000
MAX_BYTES = 1_000_000_000
LARGEST_FILE = 20_000_000
MAX_DELETED = 1_000

_LOCK_TIMEOUT_S = 10.0
_LOCK_RETRY_S = 0.02
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_file(
    organization_id: int,
    names: Names,
    parts: Iterable[bytes],
    confirm: Callable[[StagedFile], None],
) -> StagedFile:
    """Create or replace a file, and create the missing folders on its path.

    Args:
        confirm: called with the new content before it is moved into place; if it raises, nothing
            changes.

    Raises:
        ToolError: NOT_FOUND, LIMIT_EXCEEDED, OPERATION_NOT_ALLOWED, INVALID_OPERATION,
            OPERATION_FAILED; nothing was changed.
    """
    with lock_folder(organization_id) as top:
        replaced = _find_replaced(organization_id, names)
        available = _compute_available(organization_id, names, replaced)
        temporary = f"{RESERVED}{secrets.token_hex(8)}"
        try:
            size, sha256 = _stage(top, temporary, parts, available)
            staged = StagedFile(size, sha256, replaced)
            with _create_folder(organization_id, names[:-1]) as folder:
                confirm(staged)
                _move_into_place(names, folder, top, temporary)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=top)
        return staged


def check_writable(organization_id: int, names: Names, size: int) -> None:
    """Refuse a write that `write_file` would refuse now.

    Raises:
        ToolError: NOT_FOUND, LIMIT_EXCEEDED, OPERATION_NOT_ALLOWED, INVALID_OPERATION
    """
    replaced = _find_replaced(organization_id, names)
    _check_size(size, _compute_available(organization_id, names, replaced))


def list_deletions(organization_id: int, names: Names) -> tuple[FolderEntry, ...]:
    """List the entries that a deletion removes: the file, or the folder's files and empty folders.

    Raises:
        ToolError: NOT_FOUND, LIMIT_EXCEEDED, OPERATION_FAILED
    """
    entry = find_entry(organization_id, names)
    if entry is None:
        raise build_missing_file_error(names)
    if not entry.is_folder:
        return (entry,)
    entries = list_tree(organization_id, names).entries
    non_empty = {each.names[:-1] for each in entries}
    leaves = [each for each in entries if each.names not in non_empty] or [entry]
    deletions = tuple(
        each for each in leaves if not each.is_folder or is_empty(organization_id, each.names)
    )
    if not deletions:
        raise _build_deletion_error(
            names, "it contains only entries that cannot be deleted, such as links and devices"
        )
    if len(deletions) > MAX_DELETED:
        path = quote_path(join_path(names))
        raise _build_limit_error(
            f"{path} contains {len(deletions):,} files; the limit for one deletion is {MAX_DELETED:,}"
        )
    return deletions


def delete_files(
    organization_id: int, names: Names, confirm: Callable[[tuple[FolderEntry, ...]], None]
) -> tuple[FolderEntry, ...]:
    """Delete a file, or a folder with its contents, and return the deleted entries.

    Links, devices and the folders that contain them stay.

    Args:
        confirm: called with the entries that would be deleted; if it raises, nothing changes.

    Raises:
        ToolError: NOT_FOUND, LIMIT_EXCEEDED, OPERATION_FAILED; nothing was changed.
            OUTCOME_UNKNOWN: some entries were deleted.
    """
    with lock_folder(organization_id):
        deletions = list_deletions(organization_id, names)
        confirm(deletions)
        _unlink_files(organization_id, names, [entry for entry in deletions if not entry.is_folder])
        folders = (entry.names if entry.is_folder else entry.names[:-1] for entry in deletions)
        emptied = {path[:depth] for path in folders for depth in range(len(names), len(path) + 1)}
        removed = {
            path
            for path in sorted(emptied, key=len, reverse=True)
            if _remove_folder(organization_id, path)
        }
        deleted = tuple(
            entry for entry in deletions if not entry.is_folder or entry.names in removed
        )
        if not deleted:
            raise _build_deletion_error(
                names, "something was just added to it, or the disk refused the deletion"
            )
    return deleted


def _unlink_files(organization_id: int, names: Names, files: list[FolderEntry]) -> None:
    """Delete the files one by one; a failure after the first deletion leaves the outcome
    unknown."""
    for done, entry in enumerate(files):
        try:
            with open_folder(organization_id, entry.names[:-1]) as folder:
                os.unlink(entry.name, dir_fd=folder)
        except (ToolError, OSError) as error:
            why = (
                error.message
                if isinstance(error, ToolError)
                else f"the disk refused the deletion: {error.strerror}"
            )
            if not done:
                raise _build_deletion_error(names, why.rstrip(".")) from error
            path = quote_path(join_path(names))
            message = (
                f"Only {done:,} of {len(files):,} files in {path} were deleted before an error."
            )
            raise ToolError(ErrorCode.OUTCOME_UNKNOWN, message) from error


def _remove_folder(organization_id: int, path: Names) -> bool:
    try:
        with open_folder(organization_id, path[:-1]) as folder:
            os.rmdir(path[-1], dir_fd=folder)
    except (ToolError, OSError):
        return False
    return True


@contextmanager
def lock_folder(organization_id: int) -> Iterator[int]:
    """Lock the organization's folder against other writers, and yield its descriptor.

    Temporary files of killed writers are removed.

    Raises:
        ToolError: OPERATION_FAILED, another writer kept the lock for 10 s.
    """
    with open_folder(organization_id) as top:
        deadline = time.monotonic() + _LOCK_TIMEOUT_S
        while not _try_lock(top):
            if time.monotonic() > deadline:
                raise ToolError(
                    ErrorCode.OPERATION_FAILED,
                    "The folder is busy. Try again later.",
                    attempted=False,
                )
            time.sleep(_LOCK_RETRY_S)
        _remove_leftovers(top)
        yield top


def _remove_leftovers(top: int) -> None:
    with os.scandir(top) as found:
        leftovers = [each.name for each in found if each.name.startswith(RESERVED)]
    for name in leftovers:
        with suppress(OSError):
            os.unlink(name, dir_fd=top)


def _try_lock(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _find_replaced(organization_id: int, names: Names) -> FolderEntry | None:
    """Return the file at this path; None if there is none and a file can be created there."""
    check_parents(organization_id, names)
    entry = find_entry(organization_id, names)
    if entry is not None and entry.is_folder:
        message = f"{quote_path(join_path(names))} is a folder."
        raise ToolError(ErrorCode.INVALID_OPERATION, message, parameter="path", attempted=False)
    return entry


def _compute_available(organization_id: int, names: Names, replaced: FolderEntry | None) -> int:
    """Compute the bytes available for a file at this path; refuse if there are too many files."""
    entries = list_tree(organization_id).entries
    if replaced is None and len(entries) + len(names) > MAX_FILES:
        count = f"{len(entries):,} files and folders"
        raise _build_limit_error(f"Your organization has {count}; the limit is {MAX_FILES:,}")
    return MAX_BYTES - sum(entry.size for entry in entries) + (replaced.size if replaced else 0)


def _check_size(size: int, available: int) -> None:
    if size > LARGEST_FILE:
        raise _build_limit_error(f"The file is larger than {LARGEST_FILE // 1_000_000} MB")
    if size > available:
        raise _build_limit_error(
            f"Your organization's files would take more than {MAX_BYTES // 10**9} GB"
        )


def _stage(top: int, temporary: str, parts: Iterable[bytes], available: int) -> tuple[int, str]:
    """Write the parts, wait until they are on the disk, and return the file's size and hash."""
    hashed, size = hashlib.sha256(), 0
    try:
        with os.fdopen(os.open(temporary, _CREATE_FLAGS, 0o600, dir_fd=top), "wb") as file:
            for part in parts:
                size += len(part)
                _check_size(size, available)
                hashed.update(part)
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        message = f"The file could not be written: {error.strerror or type(error).__name__}."
        raise ToolError(ErrorCode.OPERATION_FAILED, message, attempted=False) from error
    return size, hashed.hexdigest()


@contextmanager
def _create_folder(organization_id: int, path: Names) -> Iterator[int]:
    """Open the folder, and create it if it is missing; afterwards, remove new folders that are
    still empty."""
    depths = range(1, len(path) + 1)
    missing = [
        path[:depth] for depth in depths if find_entry(organization_id, path[:depth]) is None
    ]
    try:
        with open_folder(organization_id, path, create=True) as folder:
            yield folder
    finally:
        for created in reversed(missing):
            _remove_folder(organization_id, created)


def _move_into_place(names: Names, folder: int, top: int, temporary: str) -> None:
    """Move the new content into its place in one atomic step."""
    with suppress(FileNotFoundError):
        check_ordinary(names, os.stat(names[-1], dir_fd=folder, follow_symlinks=False))
    os.rename(temporary, names[-1], src_dir_fd=top, dst_dir_fd=folder)
    os.fsync(folder)


def _build_deletion_error(names: Names, why: str) -> ToolError:
    message = f"{quote_path(join_path(names))} was not deleted: {why}."
    return ToolError(ErrorCode.OPERATION_FAILED, message, attempted=False)


def _build_limit_error(sentence: str) -> ToolError:
    return ToolError(ErrorCode.LIMIT_EXCEEDED, f"{sentence}.", attempted=False)
