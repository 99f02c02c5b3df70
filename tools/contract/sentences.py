"""Formatting of names and values in the sentences of cards; hostile values are harmless there."""

import re
from collections.abc import Mapping
from typing import Any

from tools.contract.canonical import canonical_json
from tools.contract.outside_text import OutsideText

LONGEST_NAME = 80
LONGEST_VALUE = 60
REPLACED = str.maketrans({"*": "\u2217", "“": "'", "”": "'"})
BOLD = re.compile(r"\*\*(.+?)\*\*", re.DOTALL)
"""A name in a sentence."""


def format_name(name: str) -> str:
    """Format the name in bold on one line, with at most 80 characters and without its own
    asterisks."""
    return f"**{sanitize(name, LONGEST_NAME)}**"


def format_title(title: str) -> str:
    """Format a tool's title: in bold, like a name, unless the tool ships with Gadget."""
    return format_name(title) if isinstance(title, OutsideText) else title


def format_value(value: Any) -> str:
    """Format a value for a sentence: numbers, `yes` and `no` as they are, a missing value as
    `empty`, and anything else in quotes."""
    if value is None or value == "":
        return "empty"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = value if isinstance(value, str) else canonical_json(value)
    return text if isinstance(value, int | float) else f"“{sanitize(text, LONGEST_VALUE)}”"


def quote_whole(text: str) -> str:
    """Quote a text for a sentence without shortening it."""
    return f"“{text.translate(REPLACED)}”"


def format_params(params: Mapping[str, Any]) -> str:
    """Quote all params as JSON, after a colon; empty if there are none."""
    return f": {quote_whole(canonical_json(params))}" if params else ""


def cut_end(sentence: str, longest: int) -> str:
    """Cut off the end of a sentence that is too long; close a name or a value that the cut
    divides."""
    if len(sentence) <= longest:
        return sentence
    start = sentence[:longest].removesuffix("*")
    if start.count("**") % 2:
        return f"{start}…**"
    return f"{start}…”" if start.rfind("“") > start.rfind("”") else f"{start}…"


def quote_names(sentence: str) -> str:
    """Return the sentence as plain text, with its names in quotes instead of in bold."""
    return BOLD.sub(r"“\1”", sentence)


def sanitize(text: str, longest: int) -> str:
    """Put the text on one line of at most `longest` characters, with its `*`, `“` and
    `”` replaced."""
    line = " ".join(text.split()).translate(REPLACED)
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
