"""How people and employees look on a page: the initials in their face."""

from __future__ import annotations

import re

from agents.web.text.safe_text import BLANKS

_WORD = re.compile(rf"[^\W\d_{''.join(BLANKS)}]+|\d+")
MOST_READ = 200


def initials(name: str) -> str:
    """One or two capital letters: of the first and the last word, `?` if there is none."""
    words = _WORD.findall(name[:MOST_READ])
    chosen = [words[0], words[-1]] if len(words) > 1 else words
    return "".join(word[0] for word in chosen).upper()[:2] or "?"
