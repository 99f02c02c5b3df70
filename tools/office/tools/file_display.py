"""Display of files for the tools in the `files` category: ranges of lines, counts, times."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tools.office.files.searching import FileSearch
from tools.registries.files import FolderEntry

LONGEST_LINE = 2_000
MAX_CHARACTERS_SHOWN = 50_000
"""The maximum number of characters of text in one result."""

EMPTY_FOLDER = "an empty folder"

_BACKTICKS = re.compile("`+")


@dataclass(frozen=True)
class LineRange:
    """Lines `first` to `last` of a text, counted from 1; `clipped` is the number of lines that were
    cut short."""

    text: str
    first: int
    last: int
    total: int
    clipped: int

    @property
    def next_offset(self) -> int | None:
        return self.last + 1 if self.last < self.total else None

    @property
    def description(self) -> str:
        if self.last < self.first:
            return f"no lines from line {self.first:,} on; the file has {self.total:,}"
        words = f"lines {self.first:,} to {self.last:,} of {self.total:,}"
        if self.clipped:
            words += f" ({format_count(self.clipped, 'line', 'lines')} cut after {LONGEST_LINE:,} characters)"
        return (
            words
            if self.next_offset is None
            else f"{words}; continue with offset {self.next_offset}"
        )

    def as_data(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "first_line": self.first,
            "last_line": self.last,
            "total_lines": self.total,
            "next_offset": self.next_offset,
        }


def take_lines(text: str, offset: int, limit: int) -> LineRange:
    """Take at most `limit` lines from line `offset` on, and at most 50,000 characters."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    shown: list[str] = []
    clipped = length = 0
    for line in lines[offset - 1 : offset - 1 + limit]:
        part = line[:LONGEST_LINE]
        if shown and length + len(part) > MAX_CHARACTERS_SHOWN:
            break
        clipped += len(line) > LONGEST_LINE
        length += len(part) + 1
        shown.append(part)
    return LineRange("\n".join(shown), offset, offset - 1 + len(shown), len(lines), clipped)


def format_code_block(text: str) -> str:
    """Format the text as a code block, with a fence that does not occur in the text."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def format_count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def format_change_time(entry: FolderEntry) -> str:
    """Format the time of the last change in UTC, to the second."""
    return datetime.fromtimestamp(entry.changed_ns / 1e9, UTC).isoformat(timespec="seconds")


def describe_size(entry: FolderEntry) -> str:
    return EMPTY_FOLDER if entry.is_folder else format_count(entry.size, "byte", "bytes")


def describe_gaps(found: FileSearch) -> str:
    """Describe the gaps in a search, with a leading comma; empty if nothing was skipped."""
    parts = []
    if len(found.hits) >= found.limit:
        parts.append(f"stopped at the limit of {found.limit:,}")
    if found.left_out:
        parts.append(f"{format_count(found.left_out, 'file', 'files')} not searched to the end")
    if found.passed_over:
        parts.append(f"{format_count(found.passed_over, 'file', 'files')} without text skipped")
    return "".join(f", {part}" for part in parts)
