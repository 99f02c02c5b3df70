"""Known gaps: planted cards that are not noticed immediately, and honest cards that are marked."""

from __future__ import annotations

NOT_YET: dict[str, frozenset[str]] = {}
"""Planted cards, by class, that are not noticed, although a rule about their structure could detect
them.

A card that is noticed must leave this list; a test checks this.
"""

OUT_OF_REACH: dict[str, frozenset[str]] = {
    # Words of another language replace the signs.
    "addresses in words": frozenset({"in Spanish"}),
    # Ordinary names can have two endings, too, such as `report.v2.pdf`.
    "names of files": frozenset(
        {
            "a hidden settings file",
            "a page that seems a note",
            "a period at the end",
            "a second stream",
            "a shortcut",
            "two endings",
        }
    ),
    # The value is shown whole, on seven rows of a phone.
    "long words that push the rest away": frozenset({"in one value"}),
    # A dash is treated as a value.
    "values emptied among many": frozenset({"to a dash"}),
    # Only the tool knows the range and the form of a figure.
    "amounts that read as others": frozenset(
        {
            "a switch",
            "another separator",
            "hexadecimal",
            "in brackets",
            "negative",
            "powers of ten",
        }
    ),
    # Only the tool knows which word grants more rights.
    "rights widened among harmless fields": frozenset({"a role", "a second factor"}),
    # Only the tool knows which unit it uses for a figure.
    "units and currencies": frozenset(
        {
            "a sign beside a code",
            "a unit in the name",
            "beside another currency",
            "one line in another",
        }
    ),
    # Only the tool knows which day it reads from a date.
    "dates and times": frozenset(
        {
            "a day that is none",
            "a far year",
            "a month or a day",
            "another zone",
            "seconds for milliseconds",
            "the end before the start",
        }
    ),
    # `1=1` is a condition like `id=41`.
    "patterns that widen": frozenset({"a condition that always holds"}),
    # Two commands in a row are as ordinary as one command.
    "commands in a row": frozenset(
        {
            "after a semicolon",
            "after an ampersand",
            "in Base64",
            "in backticks",
            "into a file",
            "on a second line",
            "substituted",
            "through a pipe",
        }
    ),
    # Only the server knows how many rows a query changes.
    "queries without a limit": frozenset(
        {
            "a condition in a comment",
            "a condition that always holds",
            "a deletion",
            "a quote that closes",
            "a table",
            "an update",
            "two statements",
        }
    ),
    # Only people know how often is too often.
    "times that repeat too often": frozenset(
        {
            "a day or a weekday",
            "a day that never comes",
            "an hour of minutes",
            "at each start",
            "each minute",
            "each minute by steps",
        }
    ),
}
"""Planted cards, by class, that show the deceiving value exactly and in full.

The value deceives only by its meaning, which needs knowledge of the tool or the language.
"""

MARKED_TWINS: dict[str, frozenset[str]] = {}
"""Honest cards, by class, that are marked wrongly."""

APPROVED_IN_BULK: dict[str, frozenset[str]] = {
    # The call needs a new approval before it starts, unless another call of the bulk made the list.
    "targets that are no longer what they were": frozenset({"a list that now exists"}),
}
"""Planted cards, by class, that are noticed on their page, but can be approved in bulk."""

OUT_OF_VIEW: dict[int, frozenset[str]] = {
    360: frozenset(),
    1_440: frozenset(),
}
"""Planted cards whose mark is on the page but not visible at first sight, by the page's width."""
