"""The look of a text. Texts that readers can confuse with each other have the same look.

Which letters and punctuation look alike is taken from Unicode's confusables (UTS 39).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise

from tools.caches import cache_by_text
from tools.contract.confusables import TWINS
from tools.contract.hidden_characters import BLANKS

_SMALL_CAPITALS = "вbкkмmнhтtβbεeηnκkτt"
SMALL_CAPITALS = dict(zip(_SMALL_CAPITALS[::2], _SMALL_CAPITALS[1::2], strict=True))
"""Letters that look like small capitals, which Unicode's table does not map to ASCII."""
LOOKS = {**TWINS, **SMALL_CAPITALS, "ї": "i", "χ": "x", "Ԛ": "Q"}
"""Maps a character to the ASCII characters that it looks like."""
STROKES = re.compile("[\u0334-\u0338\u20d2\u20d3\u20d8-\u20da\u20dd-\u20e2\u20e4-\u20ef]")
"""Combining marks that strike a letter out or enclose it."""
LEET = {"0": "o", "1": "l", "3": "e", "4": "a", "5": "s", "7": "t", "8": "b", "@": "a", "$": "s"}
_LEET_IN_WORD = re.compile(rf"(?<=[^\W\d_])[{''.join(LEET)}](?=[^\W\d_])")
ALIKE_IN_NAMES = str.maketrans({"I": "l", "1": "l", "|": "l", "0": "o", "O": "o"})
SHORTEST_JOINED = 6
LONGEST_LOOK = 100
_LOWEST_ACCENT = 200
"""The lowest combining class of marks above and below letters, such as accents. Vowel signs and
tone marks of other scripts have lower classes, and distinguish words."""


def fold_characters(text: str) -> str:
    """Replace each character with the ASCII characters that it looks like, if it looks like any.

    Digits of all scripts and styles become 0 to 9; strokes through letters and invisible characters
    disappear. Accents stay, as separate characters.
    """
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFKD", STROKES.sub("", text))
    return "".join(map(_fold_character, plain))


@lru_cache(maxsize=4096)
def _fold_character(char: str) -> str:
    if char.isascii():
        return char
    if (digit := unicodedata.digit(char, None)) is not None:
        return str(digit)  # must come before LOOKS, where some zeros look like an O
    if unicodedata.category(char) == "Cf" or char in BLANKS:
        return ""
    return STROKES.sub("", LOOKS.get(char, char))


@cache_by_text
def reduce_to_look(text: str) -> str:
    """Reduce a name to its look; names that readers can confuse have the same look."""
    visible = _LEET_IN_WORD.sub(lambda found: LEET[found[0]], fold_characters(text))
    return " ".join(
        visible.translate(ALIKE_IN_NAMES).casefold().replace("rn", "m").replace("vv", "w").split()
    )


@cache_by_text
def reduce_to_joined_look(text: str) -> str:
    """Reduce a name to a look without separators, which `Acme Corp.`, `AcmeCorp` and `Acme-Corp`
    share.

    Separators stay between two digits, and in a name that would otherwise become too short.
    """
    plain = unicodedata.normalize("NFKD", text)
    words = "".join(
        " " if unicodedata.category(char)[0] in "PZ" else char for char in plain
    ).split()
    gaps = [
        " " if one[-1].isdigit() and other[0].isdigit() else "" for one, other in pairwise(words)
    ]
    joined = "".join(
        reduce_to_look(word) + gap for word, gap in zip(words, [*gaps, ""], strict=False)
    )
    return joined if len(joined) >= SHORTEST_JOINED else reduce_to_look(text)


@cache_by_text
def compute_look(name: str) -> str:
    """Compute the stored look of a name; names that readers can confuse have the same look."""
    return simplify_look(reduce_to_joined_look(name))[:LONGEST_LOOK]


def simplify_look(look: str) -> str:
    """Remove accents from a look, and replace `cl`, which can be read as `d`."""
    if not look.isascii():
        plain = unicodedata.normalize("NFKD", look)
        look = "".join(char for char in plain if unicodedata.combining(char) < _LOWEST_ACCENT)
    return look.replace("cl", "d")


def is_one_apart(one: str, two: str) -> bool:
    """Return True if one insertion, deletion, replacement or swap of neighboring characters makes
    the texts equal."""
    short, long = (one, two) if len(one) <= len(two) else (two, one)
    if len(long) - len(short) > 1:
        return False
    start = 0
    for a, b in zip(short, long, strict=False):
        if a != b:
            break
        start += 1
    if len(long) > len(short):
        return short[start:] == long[start + 1 :]
    is_swapped = (
        short[start : start + 2] == long[start : start + 2][::-1]
        and short[start + 2 :] == long[start + 2 :]
    )
    return short[start + 1 :] == long[start + 1 :] or is_swapped
