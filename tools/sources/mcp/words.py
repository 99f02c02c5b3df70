"""What servers say, made fit to be shown: without control characters, invisible ones and colours, and not too long."""

import re
import unicodedata

from tools.contract import made_storable

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])")
_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs"})
_MARGIN = 4
"""So many times the length may be read to find as much that is seen."""


def shown(text: str, most: int) -> str:
    """The text with line breaks and tabs, in at most so many characters."""
    plain = _ESCAPES.sub("", made_storable(text[: most * _MARGIN]))
    seen = "".join(char for char in plain if char in "\n\t" or unicodedata.category(char) not in _UNSEEN).strip()
    return seen if len(seen) <= most else f"{seen[: most - 1]}…"


def one_line(text: str, most: int) -> str:
    """The same without line breaks."""
    return " ".join(shown(text, most).split())
