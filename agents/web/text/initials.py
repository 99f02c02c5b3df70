"""The initials of people and employees, shown in place of a picture."""

from __future__ import annotations

import re

from agents.web.text.safe_text import BLANKS

_WORD = re.compile(rf"[^\W\d_{''.join(BLANKS)}]+|\d+")
MAX_READ = 200


def build_initials(name: str) -> str:
    """Return one or two capitals, of the first and the last word; `?` without any."""
    words = _WORD.findall(name[:MAX_READ])
    chosen = [words[0], words[-1]] if len(words) > 1 else words
    return "".join(word[0] for word in chosen).upper()[:2] or "?"
