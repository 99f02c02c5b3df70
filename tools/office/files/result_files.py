"""Files that tools return, which are kept in their run's folder under their digests, each only
once."""

import hashlib
import unicodedata
from collections.abc import Sequence
from functools import partial

from tools.contract import ErrorCode, KeptFile, Level, ResultFile, ToolError, find_media_type
from tools.office.files.changes import write_file
from tools.office.files.folder import find_entry, list_folder
from tools.office.files.paths import LONGEST_NAME, is_valid_name
from tools.registries.files import Names, StagedFile, join_path

FOLDER = "results"
MOST_FROM_READS = 20
"""The maximum number of files that the reads of one run may keep. Writes do not need this limit,
because each write is approved."""
_DIGITS = 16
_LONGEST_NAME = 80
"""The maximum length of a kept file's name in characters, each of which takes at most four bytes.
"""
_REPLACED = frozenset('/<>:"|?*\\%')


def keep_result_files(
    organization_id: int, run_id: int, level: Level, files: Sequence[ResultFile]
) -> list[KeptFile]:
    """Keep the files; the organization's limits apply to them.

    Raises:
        ToolError: LIMIT_EXCEEDED, the run or the organization has too many files; OPERATION_FAILED,
            the disk cannot store them.
    """
    group = "reads" if level is Level.READ else "changes"
    folder = (FOLDER, f"run-{run_id}", group)
    return [_keep(organization_id, folder, level, file) for file in files]


def _keep(organization_id: int, folder: Names, level: Level, file: ResultFile) -> KeptFile:
    digest, name = hashlib.sha256(file.content).hexdigest(), clean_name(file.name)
    names = (*folder, f"{digest[:_DIGITS]}-{name}")
    if find_entry(organization_id, names) is None:
        confirm = partial(_refuse_more, organization_id, folder) if level is Level.READ else _accept
        write_file(organization_id, names, [file.content], confirm)
    return KeptFile(name, join_path(names), len(file.content), find_media_type(file.content_type))


def clean_name(name: str) -> str:
    """Return a similar name that every system accepts; `file` if nothing of the name remains."""
    text = unicodedata.normalize("NFC", name.replace("\\", "/").rpartition("/")[2])
    kept = "".join("_" if char in _REPLACED else char for char in text)[:_LONGEST_NAME].strip(
        " .~…"
    )
    return (
        kept
        if kept and is_valid_name(kept) and len(kept.encode()) < LONGEST_NAME - _DIGITS
        else "file"
    )


def _refuse_more(organization_id: int, folder: Names, _: StagedFile) -> None:
    """Refuse a file beyond the limit; the folder is locked, so the files of concurrent reads are
    counted, too."""
    count = len(list_folder(organization_id, folder).entries)
    if count >= MOST_FROM_READS:
        message = f"This run's reads have returned {count} files; the limit is {MOST_FROM_READS}."
        raise ToolError(ErrorCode.LIMIT_EXCEEDED, message, attempted=False)


def _accept(_: StagedFile) -> None:
    """Accept the file: writes have no limit besides the organization's."""
