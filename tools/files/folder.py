"""An organisation's folder: every step on the way is opened by itself and follows no link, so nothing leads outside."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

from tools.contract import ErrorCode, ToolError

from .paths import MOST_DEPTH, Names, is_name, path_of, quoted

RESERVED = ".gadget-"
"""What the names of our own files start with; no path can name them."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NOTHING_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EMLINK})
"""A link is answered like nothing at all."""


@dataclass(frozen=True)
class Entry:
    """A file or folder as it stands on the disk; a folder's size is 0."""

    names: Names
    is_folder: bool
    size: int
    changed_ns: int

    @property
    def name(self) -> str:
        return self.names[-1]

    @property
    def path(self) -> str:
        return path_of(self.names)


@dataclass
class Listing:
    """What a folder holds; `passed_over` counts links, devices and names that no path can have."""

    entries: list[Entry] = field(default_factory=list)
    passed_over: int = 0


@contextmanager
def opened(organization_id: int, names: Names = (), *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder.

    Args:
        make: missing folders on the way are made.

    Raises:
        ToolError: NOT_FOUND
    """
    here = _open_top(organization_id)
    try:
        for depth in range(len(names)):
            below = _open_below(here, names[: depth + 1], make=make)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def open_file(organization_id: int, names: Names) -> BinaryIO:
    """The file, open for reading: a regular one that has no second name elsewhere.

    Raises:
        ToolError: NOT_FOUND, OPERATION_NOT_ALLOWED
    """
    with opened(organization_id, names[:-1]) as folder:
        try:
            descriptor = os.open(names[-1], _FILE, dir_fd=folder)
        except OSError as error:
            raise _unopened(names, error) from error
    try:
        check_ordinary(names, os.fstat(descriptor))
    except ToolError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def entry_at(organization_id: int, names: Names) -> Entry | None:
    """The ordinary file or folder of this path; None if nothing is there.

    Raises:
        ToolError: OPERATION_NOT_ALLOWED, something else is there.
    """
    try:
        with opened(organization_id, names[:-1]) as folder:
            status = os.stat(names[-1], dir_fd=folder, follow_symlinks=False)
    except (ToolError, FileNotFoundError):
        return None
    if not stat.S_ISDIR(status.st_mode):
        check_ordinary(names, status)
    return _entry(names, status)


def check_way(organization_id: int, names: Names) -> None:
    """Refuse a path on whose way something stands that is no folder; folders that are missing there can be made.

    Raises:
        ToolError: NOT_FOUND
    """
    try:
        with opened(organization_id, names[:-1]):
            return
    except ToolError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise


def is_empty(organization_id: int, names: Names) -> bool:
    """Whether the folder holds nothing at all: no link either, and nothing that no path can name.

    Raises:
        ToolError: NOT_FOUND
    """
    with opened(organization_id, names) as folder, os.scandir(folder) as found:
        return next(found, None) is None


def listing_of(organization_id: int, names: Names = ()) -> Listing:
    """What the folder itself holds, sorted: folders first, then by name.

    Raises:
        ToolError: NOT_FOUND
    """
    listing = Listing()
    with opened(organization_id, names) as folder:
        _scan(folder, names, listing)
    listing.entries.sort(key=lambda entry: (not entry.is_folder, entry.name.casefold(), entry.name))
    return listing


def tree_of(organization_id: int, names: Names = ()) -> Listing:
    """All that the folder and its folders hold, sorted by path.

    Raises:
        ToolError: NOT_FOUND
    """
    listing = Listing()
    with opened(organization_id, names) as folder:
        _walk(folder, names, listing)
    listing.entries.sort(key=lambda entry: entry.names)
    return listing


def check_ordinary(names: Names, status: os.stat_result) -> None:
    """Refuse what is no ordinary file.

    Raises:
        ToolError: NOT_FOUND for a link, INVALID_OPERATION for a folder, OPERATION_NOT_ALLOWED
    """
    if stat.S_ISLNK(status.st_mode):
        raise no_file(names)
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(ErrorCode.INVALID_OPERATION, f"{quoted(path_of(names))} is a folder.", attempted=False)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise ToolError(
            ErrorCode.OPERATION_NOT_ALLOWED,
            f"{quoted(path_of(names))} is no ordinary file, or has a second name elsewhere.",
            attempted=False,
        )


def no_file(names: Names) -> ToolError:
    return ToolError(
        ErrorCode.NOT_FOUND,
        f"There is no file {quoted(path_of(names))}.",
        parameter="path",
        recovery_hint="Use files.list to see what is there.",
        attempted=False,
    )


def _open_top(organization_id: int) -> int:
    base = Path(settings.GADGET_FILES_DIR)
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    parent = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(FileExistsError):
            os.mkdir(str(organization_id), 0o700, dir_fd=parent)
        return os.open(str(organization_id), _FOLDER, dir_fd=parent)
    finally:
        os.close(parent)


def _open_below(here: int, names: Names, *, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(names[-1], 0o700, dir_fd=here)
            os.fsync(here)
    try:
        return os.open(names[-1], _FOLDER, dir_fd=here)
    except OSError as error:
        if error.errno not in _NOTHING_THERE:
            raise
        message = f"There is no folder {quoted(path_of(names))}."
        raise ToolError(ErrorCode.NOT_FOUND, message, parameter="path", attempted=False) from error


def _unopened(names: Names, error: OSError) -> ToolError | OSError:
    if error.errno in _NOTHING_THERE:
        return no_file(names)
    if error.errno in {errno.ENXIO, errno.EOPNOTSUPP, errno.ENODEV}:
        message = f"{quoted(path_of(names))} is no ordinary file."
        return ToolError(ErrorCode.OPERATION_NOT_ALLOWED, message, attempted=False)
    return error


def _entry(names: Names, status: os.stat_result) -> Entry:
    is_folder = stat.S_ISDIR(status.st_mode)
    return Entry(names, is_folder, 0 if is_folder else status.st_size, status.st_mtime_ns)


def _scan(folder: int, names: Names, listing: Listing) -> list[Entry]:
    """Add what stands directly in the folder; returns its folders."""
    folders = []
    with os.scandir(folder) as found:
        for one in found:
            if one.name.startswith(RESERVED):
                continue
            try:
                status = one.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            is_ordinary = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
            if not is_name(one.name) or not (is_ordinary or stat.S_ISDIR(status.st_mode)):
                listing.passed_over += 1
                continue
            entry = _entry((*names, one.name), status)
            listing.entries.append(entry)
            if entry.is_folder:
                folders.append(entry)
    return folders


def _walk(folder: int, names: Names, listing: Listing) -> None:
    for entry in _scan(folder, names, listing):
        if len(entry.names) >= MOST_DEPTH:
            listing.passed_over += 1
            continue
        try:
            below = _open_below(folder, entry.names, make=False)
        except ToolError:
            continue
        try:
            _walk(below, entry.names, listing)
        finally:
            os.close(below)
