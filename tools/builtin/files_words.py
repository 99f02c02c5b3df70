"""How the tools of the category files tell what they found: pages of lines, counts, times."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tools.files.folder import Entry
from tools.files.searching import Search

LONGEST_LINE = 2_000
LONGEST_PAGE = 50_000
"""Characters of one answer."""

EMPTY_FOLDER = "an empty folder"

_BACKTICKS = re.compile("`+")


@dataclass(frozen=True)
class Page:
    """Lines `first` to `last` of a text, counted from 1; `clipped` of them are shown without their end."""

    text: str
    first: int
    last: int
    total: int
    clipped: int

    @property
    def next_offset(self) -> int | None:
        return self.last + 1 if self.last < self.total else None

    @property
    def in_words(self) -> str:
        if self.last < self.first:
            return f"no lines from {self.first:,}: it has {self.total:,}"
        words = f"lines {self.first:,} to {self.last:,} of {self.total:,}"
        if self.clipped:
            words += f" ({counted(self.clipped, 'line', 'lines')} cut after {LONGEST_LINE:,} characters)"
        return words if self.next_offset is None else f"{words}; go on with offset {self.next_offset}"

    def as_data(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "first_line": self.first,
            "last_line": self.last,
            "total_lines": self.total,
            "next_offset": self.next_offset,
        }


def page_of_lines(text: str, offset: int, limit: int) -> Page:
    """At most `limit` lines from line `offset`, and at most 50,000 characters."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    shown: list[str] = []
    clipped = length = 0
    for line in lines[offset - 1 : offset - 1 + limit]:
        part = line[:LONGEST_LINE]
        if shown and length + len(part) > LONGEST_PAGE:
            break
        clipped += len(line) > LONGEST_LINE
        length += len(part) + 1
        shown.append(part)
    return Page("\n".join(shown), offset, offset - 1 + len(shown), len(lines), clipped)


def as_block(text: str) -> str:
    """The text as a block of code that nothing in it can end."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def changed_at(entry: Entry) -> str:
    """The time in UTC, to the second."""
    return datetime.fromtimestamp(entry.changed_ns / 1e9, UTC).isoformat(timespec="seconds")


def size_in_words(entry: Entry) -> str:
    return EMPTY_FOLDER if entry.is_folder else counted(entry.size, "byte", "bytes")


def what_is_left_out(found: Search) -> str:
    """What a search did not look at, with a comma before; empty if it saw all."""
    parts = []
    if len(found.hits) >= found.limit:
        parts.append(f"stopped at the limit of {found.limit:,}")
    if found.left_out:
        parts.append(f"{counted(found.left_out, 'file', 'files')} not searched to the end")
    if found.passed_over:
        parts.append(f"{counted(found.passed_over, 'file', 'files')} without text passed over")
    return "".join(f", {part}" for part in parts)
