"""Cleaning of server texts: remove control characters, hidden characters and terminal colors, and
limit the length."""

import re
import unicodedata

from tools.contract import make_storable

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])")
_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs"})
_MARGIN = 4
"""The factor by which more characters are read than are wanted, because some may be invisible."""


def clean_text(text: str, most: int) -> str:
    """Clean the text, shorten it to `most` characters, and keep its line breaks and tabs."""
    plain = _ESCAPES.sub("", make_storable(text[: most * _MARGIN]))
    visible = "".join(
        char for char in plain if char in "\n\t" or unicodedata.category(char) not in _UNSEEN
    ).strip()
    return visible if len(visible) <= most else f"{visible[: most - 1]}…"


def clean_line(text: str, most: int) -> str:
    """Clean the text and put it on one line."""
    return " ".join(clean_text(text, most).split())
