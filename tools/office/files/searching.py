"""Search for patterns in the lines of files, with RE2, which takes linear time for any pattern."""

import time
from dataclasses import dataclass, field

import re2

from tools.contract import ErrorCode, ToolError
from tools.office.files.changes import LARGEST_FILE
from tools.office.files.contents import decode_text
from tools.office.files.folder import build_missing_file_error, find_entry, list_tree, open_file
from tools.registries.files import FolderEntry, Names

LONGEST_PATTERN = 500
SEARCHED_BYTES_PER_LINE = 10_000
"""The number of bytes at the start of each line that are searched."""

_LARGEST_PROGRAM = 5_000
_TIME_LIMIT_S = 8.0
_SHOWN_BEFORE = 80
_SHOWN = 300


@dataclass(frozen=True)
class LineMatch:
    """A line that matches; a long one is cut around the first match."""

    path: str
    line: int
    text: str


@dataclass
class FileSearch:
    """The progress of a search.

    Attributes:
        searched: the number of files that were searched completely.
        passed_over: the number of files that are not text or are larger than 20 MB.
        left_out: the number of files that were not searched completely, because the limit of hits
            or of time was reached or their lines are too long.
    """

    limit: int
    hits: list[LineMatch] = field(default_factory=list)
    searched: int = 0
    passed_over: int = 0
    left_out: int = 0
    ends_at: float = field(default_factory=lambda: time.monotonic() + _TIME_LIMIT_S)

    @property
    def is_over(self) -> bool:
        return len(self.hits) >= self.limit or time.monotonic() > self.ends_at


def compile_pattern(pattern: str, *, ignore_case: bool = False) -> "re2._Regexp":
    """Compile the pattern.

    Raises:
        ToolError: INVALID_PARAMETER, RE2 does not support the pattern, or it is too large.
    """
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.never_capture = True
    options.log_errors = False
    try:
        found = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if error.args else "it has a syntax error"
        raise _build_pattern_error(pattern, reason) from error
    if max(found.programsize, found.reverseprogramsize) > _LARGEST_PROGRAM:
        raise _build_pattern_error(pattern, "its repetitions make it too large")
    return found


def search_files(
    organization_id: int, names: Names, pattern: "re2._Regexp", into: FileSearch
) -> None:
    """Search a file, or all files of a folder in the order of their paths.

    Raises:
        ToolError: NOT_FOUND
    """
    for entry in _list_files(organization_id, names):
        if into.is_over:
            into.left_out += 1
            continue
        lines = _read_lines(organization_id, entry)
        if lines is None:
            into.passed_over += 1
        elif _search_lines(entry, lines, pattern, into):
            into.searched += 1
        else:
            into.left_out += 1


def _build_pattern_error(pattern: str, why: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_PARAMETER,
        f"{pattern!r} cannot be used as a pattern: {why}.",
        parameter="pattern",
        expected="an RE2 regular expression, without backreferences or look-around",
        example=r"invoice \d{4}",
        attempted=False,
    )


def _list_files(organization_id: int, names: Names) -> list[FolderEntry]:
    if names:
        entry = find_entry(organization_id, names)
        if entry is None:
            raise build_missing_file_error(names)
        if not entry.is_folder:
            return [entry]
    return [entry for entry in list_tree(organization_id, names).entries if not entry.is_folder]


def _read_lines(organization_id: int, entry: FolderEntry) -> list[bytes] | None:
    """Read the file's lines; return None if it is not text, is too large, or no longer exists."""
    if entry.size > LARGEST_FILE:
        return None
    try:
        with open_file(organization_id, entry.names) as file:
            data = file.read(LARGEST_FILE)
    except ToolError:
        return None
    return None if decode_text(data) is None else data.split(b"\n")


def _search_lines(
    entry: FolderEntry, lines: list[bytes], pattern: "re2._Regexp", into: FileSearch
) -> bool:
    """Search the lines; return True if all were searched completely."""
    is_whole = True
    for number, ended in enumerate(lines, 1):
        if into.is_over:
            return False
        line = ended.rstrip(b"\r")
        # With a slice, `$` would match at the cut.
        found = pattern.search(line, 0, SEARCHED_BYTES_PER_LINE)
        is_whole = is_whole and len(line) <= SEARCHED_BYTES_PER_LINE
        if found is not None and (ended or number < len(lines)):
            into.hits.append(LineMatch(entry.path, number, _cut_line(line, found.start())))
    return is_whole


def _cut_line(line: bytes, start: int) -> str:
    first = max(0, start - _SHOWN_BEFORE)
    part = line[first : first + _SHOWN].decode("utf-8", "ignore")
    return f"{'…' if first else ''}{part}{'…' if first + _SHOWN < len(line) else ''}"
