"""The operations on organizations' files that pages, the engine and backups use."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import BinaryIO

from tools.contract import KeptFile, Level, ResultFile
from tools.registries import Registry

RESERVED = ".gadget-"
"""The prefix of Gadget's own files, which no path can name."""

Names = tuple[str, ...]
"""The names of a path, from the organization's folder to the entry; empty for the folder itself."""


def join_path(names: Names) -> str:
    return "/".join(names)


@dataclass(frozen=True)
class FolderEntry:
    """A file or folder on the disk, with its size in bytes; a folder's size is 0."""

    names: Names
    is_folder: bool
    size: int
    changed_ns: int

    @property
    def name(self) -> str:
        return self.names[-1]

    @property
    def path(self) -> str:
        return join_path(self.names)


@dataclass
class FolderListing:
    """The entries of a folder; `passed_over` counts links, devices and unusable names."""

    entries: list[FolderEntry] = field(default_factory=list)
    passed_over: int = 0


@dataclass(frozen=True)
class StagedFile:
    """New content on the disk that is not in place yet; `replaces` is the file that it would
    replace."""

    size: int
    sha256: str
    replaces: FolderEntry | None


Deletions = tuple[FolderEntry, ...]


@dataclass(frozen=True)
class FileStore:
    """Files by organization. The functions raise ToolError to refuse an operation.

    Attributes:
        largest_file: the largest size of a file, in bytes.
        max_files: the maximum number of files and folders of one organization.
        parse_path: parses the path of a folder; an empty one is the organization's folder.
        parse_file_path: parses the path of an entry.
        is_folder: tells whether the folder can be listed; links cannot.
        list_folder: lists the folder's own entries.
        open_file: opens a file for reading.
        write_file: stores the parts; the last argument is called before the last step and may
            raise.
        list_deletions: lists what a deletion would remove.
        delete_files: deletes a file or folder; the last argument is called with the entries before
            the deletion, and may raise.
        keep_result_files: keeps the files that a call of this level in this run returned.
        list_organizations: lists the ids of organizations that have files.
        list_all_entries: yields every file and folder with the organization's id.
        blocking_changes: blocks writing and deleting on all machines, for a backup.
    """

    largest_file: int
    max_files: int
    parse_path: Callable[[str], Names]
    parse_file_path: Callable[[str], Names]
    is_folder: Callable[[int, Names], bool]
    list_folder: Callable[[int, Names], FolderListing]
    open_file: Callable[[int, Names], BinaryIO]
    write_file: Callable[[int, Names, Iterable[bytes], Callable[[StagedFile], None]], StagedFile]
    list_deletions: Callable[[int, Names], Deletions]
    delete_files: Callable[[int, Names, Callable[[Deletions], None]], Deletions]
    keep_result_files: Callable[[int, int, Level, Sequence[ResultFile]], list[KeptFile]]
    list_organizations: Callable[[], list[int]]
    list_all_entries: Callable[[], Iterator[tuple[int, FolderEntry]]]
    blocking_changes: Callable[[], AbstractContextManager[None]]


FILE_STORE = Registry[FileStore]("files")
