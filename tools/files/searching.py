"""Patterns over the lines of files; RE2 takes a time that grows with the line alone, whatever the pattern is."""

import time
from dataclasses import dataclass, field

import re2

from tools.contract import ErrorCode, ToolError

from .changing import LARGEST_FILE
from .contents import text_of
from .folder import Entry, entry_at, no_file, open_file, tree_of
from .paths import Names

LONGEST_PATTERN = 500
SEARCHED_OF_A_LINE = 10_000
"""Bytes from its start."""

_LARGEST_PROGRAM = 5_000
_PATIENCE_S = 8.0
_SHOWN_BEFORE = 80
_SHOWN = 300


@dataclass(frozen=True)
class Hit:
    """A line that fits; a long one is cut around the first place."""

    path: str
    line: int
    text: str


@dataclass
class Search:
    """What was found so far.

    Attributes:
        searched: files that were read to their end.
        passed_over: files that hold no text, or more than 20 MB.
        left_out: files that were not searched, or not to their end: the limit of hits or of time was reached, or they
            have lines that are too long.
    """

    limit: int
    hits: list[Hit] = field(default_factory=list)
    searched: int = 0
    passed_over: int = 0
    left_out: int = 0
    ends_at: float = field(default_factory=lambda: time.monotonic() + _PATIENCE_S)

    @property
    def is_over(self) -> bool:
        return len(self.hits) >= self.limit or time.monotonic() > self.ends_at


def compiled(pattern: str, *, ignore_case: bool = False) -> "re2._Regexp":
    """The pattern, ready to be searched for.

    Raises:
        ToolError: INVALID_PARAMETER, it is none of RE2's, or too large.
    """
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.never_capture = True
    options.log_errors = False
    try:
        found = re2.compile(pattern, options)
    except re2.error as error:
        told = error.args[0].decode("utf-8", "replace") if error.args else "it is not understood"
        raise _no_pattern(pattern, told) from error
    if max(found.programsize, found.reverseprogramsize) > _LARGEST_PROGRAM:
        raise _no_pattern(pattern, "its repetitions make it too large")
    return found


def search(organization_id: int, names: Names, wanted: "re2._Regexp", into: Search) -> None:
    """Look at a file, or at all files of a folder in the order of their paths.

    Raises:
        ToolError: NOT_FOUND
    """
    for entry in _files_at(organization_id, names):
        if into.is_over:
            into.left_out += 1
            continue
        lines = _lines_of(organization_id, entry)
        if lines is None:
            into.passed_over += 1
        elif _search_lines(entry, lines, wanted, into):
            into.searched += 1
        else:
            into.left_out += 1


def _no_pattern(pattern: str, why: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_PARAMETER,
        f"{pattern!r} is no pattern that can be searched for: {why}.",
        parameter="pattern",
        expected="a regular expression as RE2 has them: without backreferences and look-around",
        example=r"invoice \d{4}",
        attempted=False,
    )


def _files_at(organization_id: int, names: Names) -> list[Entry]:
    if names:
        entry = entry_at(organization_id, names)
        if entry is None:
            raise no_file(names)
        if not entry.is_folder:
            return [entry]
    return [entry for entry in tree_of(organization_id, names).entries if not entry.is_folder]


def _lines_of(organization_id: int, entry: Entry) -> list[bytes] | None:
    """The file's lines; None if it holds no text, is too large, or is gone."""
    if entry.size > LARGEST_FILE:
        return None
    try:
        with open_file(organization_id, entry.names) as file:
            data = file.read(LARGEST_FILE)
    except ToolError:
        return None
    return None if text_of(data) is None else data.split(b"\n")


def _search_lines(entry: Entry, lines: list[bytes], wanted: "re2._Regexp", into: Search) -> bool:
    """True if all lines were looked at, to their ends."""
    is_whole = True
    for number, ended in enumerate(lines, 1):
        if into.is_over:
            return False
        line = ended.rstrip(b"\r")
        # Unlike a slice, this does not take the cut for the end of the line.
        found = wanted.search(line, 0, SEARCHED_OF_A_LINE)
        is_whole = is_whole and len(line) <= SEARCHED_OF_A_LINE
        if found is not None and (ended or number < len(lines)):
            into.hits.append(Hit(entry.path, number, _shown(line, found.start())))
    return is_whole


def _shown(line: bytes, start: int) -> str:
    first = max(0, start - _SHOWN_BEFORE)
    part = line[first : first + _SHOWN].decode("utf-8", "ignore")
    return f"{'…' if first else ''}{part}{'…' if first + _SHOWN < len(line) else ''}"
