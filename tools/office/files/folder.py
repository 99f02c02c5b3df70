"""Access to an organization's folder; no path leads out of it.

Each folder on a path is opened separately, without following links.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

from tools.contract import ErrorCode, ToolError
from tools.office.files.paths import MAX_DEPTH, is_valid_name, quote_path
from tools.registries.files import RESERVED, FolderEntry, FolderListing, Names, join_path

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_ABSENT_ERRORS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EMLINK})
"""Errors which mean that the entry does not exist; a link is treated as missing."""


@contextmanager
def open_folder(organization_id: int, names: Names = (), *, create: bool = False) -> Iterator[int]:
    """Open the folder and yield its descriptor.

    Args:
        create: create missing folders on the path.

    Raises:
        ToolError: NOT_FOUND
    """
    here = _open_top(organization_id)
    try:
        for depth in range(len(names)):
            below = _open_below(here, names[: depth + 1], create=create)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def open_file(organization_id: int, names: Names) -> BinaryIO:
    """Open a file for reading; it must be a regular file without a second hard link.

    Raises:
        ToolError: NOT_FOUND, OPERATION_NOT_ALLOWED
    """
    with open_folder(organization_id, names[:-1]) as folder:
        try:
            descriptor = os.open(names[-1], _FILE_FLAGS, dir_fd=folder)
        except OSError as error:
            raise _explain_open_error(names, error) from error
    try:
        check_ordinary(names, os.fstat(descriptor))
    except ToolError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def find_entry(organization_id: int, names: Names) -> FolderEntry | None:
    """Find the ordinary file or folder at this path; return None if there is none.

    Raises:
        ToolError: NOT_FOUND for a link, OPERATION_NOT_ALLOWED for anything else, such as a device.
    """
    try:
        with open_folder(organization_id, names[:-1]) as folder:
            status = os.stat(names[-1], dir_fd=folder, follow_symlinks=False)
    except (ToolError, FileNotFoundError):
        return None
    if not stat.S_ISDIR(status.st_mode):
        check_ordinary(names, status)
    return _build_entry(names, status)


def check_parents(organization_id: int, names: Names) -> None:
    """Refuse a path if a parent exists and is not a folder; missing parents are allowed.

    Raises:
        ToolError: NOT_FOUND
    """
    try:
        with open_folder(organization_id, names[:-1]):
            return
    except ToolError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise


def is_empty(organization_id: int, names: Names) -> bool:
    """Return True if the folder has no entries, not even links or entries that no path can name.

    Raises:
        ToolError: NOT_FOUND
    """
    with open_folder(organization_id, names) as folder, os.scandir(folder) as found:
        return next(found, None) is None


def list_folder(organization_id: int, names: Names = ()) -> FolderListing:
    """List the entries directly in the folder: first the folders, then the files, each sorted by
    name.

    Raises:
        ToolError: NOT_FOUND
    """
    listing = FolderListing()
    with open_folder(organization_id, names) as folder:
        _scan(folder, names, listing)
    listing.entries.sort(key=lambda entry: (not entry.is_folder, entry.name.casefold(), entry.name))
    return listing


def list_tree(organization_id: int, names: Names = ()) -> FolderListing:
    """List the entries of the folder and its subfolders, sorted by path.

    Raises:
        ToolError: NOT_FOUND
    """
    listing = FolderListing()
    with open_folder(organization_id, names) as folder:
        _walk(folder, names, listing)
    listing.entries.sort(key=lambda entry: entry.names)
    return listing


def check_ordinary(names: Names, status: os.stat_result) -> None:
    """Refuse anything except an ordinary file.

    Raises:
        ToolError: NOT_FOUND for a link, INVALID_OPERATION for a folder, OPERATION_NOT_ALLOWED for
            anything else, such as a file with two hard links.
    """
    if stat.S_ISLNK(status.st_mode):
        raise build_missing_file_error(names)
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(
            ErrorCode.INVALID_OPERATION,
            f"{quote_path(join_path(names))} is a folder.",
            attempted=False,
        )
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise ToolError(
            ErrorCode.OPERATION_NOT_ALLOWED,
            f"{quote_path(join_path(names))} is not an ordinary file, or has a second hard link.",
            attempted=False,
        )


def build_missing_file_error(names: Names) -> ToolError:
    return ToolError(
        ErrorCode.NOT_FOUND,
        f"There is no file {quote_path(join_path(names))}.",
        parameter="path",
        recovery_hint="Use files.list to see the files.",
        attempted=False,
    )


def _open_top(organization_id: int) -> int:
    base = Path(settings.GADGET_FILES_DIR)
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    parent = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(FileExistsError):
            os.mkdir(str(organization_id), 0o700, dir_fd=parent)
        return os.open(str(organization_id), _FOLDER_FLAGS, dir_fd=parent)
    finally:
        os.close(parent)


def _open_below(here: int, names: Names, *, create: bool) -> int:
    if create:
        with suppress(FileExistsError):
            os.mkdir(names[-1], 0o700, dir_fd=here)
            os.fsync(here)
    try:
        return os.open(names[-1], _FOLDER_FLAGS, dir_fd=here)
    except OSError as error:
        if error.errno not in _ABSENT_ERRORS:
            raise
        message = f"There is no folder {quote_path(join_path(names))}."
        raise ToolError(ErrorCode.NOT_FOUND, message, parameter="path", attempted=False) from error


def _explain_open_error(names: Names, error: OSError) -> ToolError | OSError:
    if error.errno in _ABSENT_ERRORS:
        return build_missing_file_error(names)
    if error.errno in {errno.ENXIO, errno.EOPNOTSUPP, errno.ENODEV}:
        message = f"{quote_path(join_path(names))} is not an ordinary file."
        return ToolError(ErrorCode.OPERATION_NOT_ALLOWED, message, attempted=False)
    return error


def _build_entry(names: Names, status: os.stat_result) -> FolderEntry:
    is_folder = stat.S_ISDIR(status.st_mode)
    return FolderEntry(names, is_folder, 0 if is_folder else status.st_size, status.st_mtime_ns)


def _scan(folder: int, names: Names, listing: FolderListing) -> list[FolderEntry]:
    """Add the entries directly in the folder to the listing, and return its subfolders."""
    folders = []
    with os.scandir(folder) as found:
        for item in found:
            if item.name.startswith(RESERVED):
                continue
            try:
                status = item.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            is_ordinary = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
            if not is_valid_name(item.name) or not (is_ordinary or stat.S_ISDIR(status.st_mode)):
                listing.passed_over += 1
                continue
            entry = _build_entry((*names, item.name), status)
            listing.entries.append(entry)
            if entry.is_folder:
                folders.append(entry)
    return folders


def _walk(folder: int, names: Names, listing: FolderListing) -> None:
    for entry in _scan(folder, names, listing):
        if len(entry.names) >= MAX_DEPTH:
            listing.passed_over += 1
            continue
        try:
            below = _open_below(folder, entry.names, create=False)
        except ToolError:
            continue
        try:
            _walk(below, entry.names, listing)
        finally:
            os.close(below)
