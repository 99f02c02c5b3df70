"""Names and values in the sentences of cards, safe even if they are hostile."""

import re
from typing import Any

from tools.contract.canonical import canonical_json
from tools.contract.outside_text import OutsideText

LONGEST_NAME = 80
LONGEST_VALUE = 60
REPLACED = str.maketrans({"*": "\u2217", "“": "'", "”": "'"})
PLAIN = re.compile(r"[\w.@+-]+")


def format_name(name: str) -> str:
    """Format the name in bold on one line, with at most 80 characters and without asterisks of its
    own."""
    return f"**{sanitize(name, LONGEST_NAME)}**"


def format_title(title: str) -> str:
    """Format a tool's title: in bold, like a name, unless the tool ships with Gadget."""
    return format_name(title) if isinstance(title, OutsideText) else title


def format_value(value: Any) -> str:
    """Format a value for a sentence: a single plain word as it is, other text in quotes, and a
    missing value as `empty`."""
    if value is None or value == "":
        return "empty"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = value if isinstance(value, str) else canonical_json(value)
    if isinstance(value, int | float) or (PLAIN.fullmatch(text) and len(text) <= LONGEST_VALUE):
        return text
    return f"“{sanitize(text, LONGEST_VALUE)}”"


def sanitize(text: str, longest: int) -> str:
    """Put the text on one line of at most `longest` characters, with its `*`, `“` and
    `”` replaced."""
    line = " ".join(text.split()).translate(REPLACED)
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
