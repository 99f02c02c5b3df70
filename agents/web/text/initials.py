"""Initials of people and employees, shown in place of a picture."""

from __future__ import annotations

import re

from tools.contract.hidden_characters import BLANKS

_WORD = re.compile(rf"[^\W\d_{''.join(BLANKS)}]+|\d+")
MAX_NAME_LENGTH = 200


def build_initials(name: str) -> str:
    """Return the capital initials of the first and the last word; `?` for a name without words."""
    words = _WORD.findall(name[:MAX_NAME_LENGTH])
    outer = [words[0], words[-1]] if len(words) > 1 else words
    return "".join(word[0] for word in outer).upper()[:2] or "?"
