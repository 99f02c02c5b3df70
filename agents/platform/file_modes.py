"""File modes that keep stored files private to their owner: 0700 for folders, 0600 for files."""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

OTHERS = 0o077
"""The permission bits of all users but the owner."""
SIDE_FILES = ("-wal", "-shm", "-journal")
"""The suffixes of SQLite's side files."""
RECURSIVE_FOLDERS = ("files", "redis")


def keep_new_files_private() -> None:
    """Make this process and its children create only files and folders that their owner alone can
    open."""
    os.umask(OTHERS)


def list_stored_paths(data_dir: Path, database: Path | None) -> Iterator[Path]:
    """Yield the data folder, its contents, and the SQLite database with its side files.

    A data folder that other users share, such as `/tmp`, is left out, and so is a folder outside it
    that contains the database. Links are not followed.
    """
    if database is not None:
        yield from filter(
            Path.is_file, (database, *(Path(f"{database}{end}") for end in SIDE_FILES))
        )
    if data_dir.stat().st_mode & stat.S_ISVTX:
        return
    yield data_dir
    for entry in os.scandir(data_dir):
        if not entry.is_symlink():
            yield Path(entry)
        if entry.name in RECURSIVE_FOLDERS and entry.is_dir():
            yield from _walk(os.path.realpath(entry.path))


def find_open_paths(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the paths that users other than the owner can access."""
    for path in paths:
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue
        if mode & OTHERS and not stat.S_ISLNK(mode):
            yield path


def close_to_others(paths: Iterable[Path]) -> int:
    """Remove all permissions except the owner's; return the number of changed paths. Other users'
    files are left unchanged."""
    closed = 0
    for path in find_open_paths(paths):
        try:
            path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~OTHERS)
            closed += 1
        except (PermissionError, FileNotFoundError):
            continue
    return closed


def _walk(folder: str) -> Iterator[Path]:
    """Yield the folder and everything inside it; each folder comes before its contents."""
    for here, _, files in os.walk(folder):
        yield Path(here)
        yield from (Path(here, name) for name in files)
