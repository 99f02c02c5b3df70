"""Names that differ only a little: in one letter or in their last words.

A name's look (`look_alikes.py`) already unites spellings that readers cannot tell apart.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from tools.contract.look_alikes import compute_look, fold_characters, is_one_apart

SHORTEST_NEAR = 5
SHORTEST_NEAR_OTHER = 10
"""The minimum length of looks that are compared letter by letter. It is higher for scripts without
capitals, because in these a character is a syllable or a word, or most names are short."""
SHORTEST_STEM = 4
LONGEST_ENDING = 4
"""The maximum number of letters in a short last word, such as a legal form."""
LONGEST_CODE = 3
"""The maximum number of letters in a word that is too short to be compared letter by letter, such
as `EU`."""
LONGEST_ARTICLE = 3
MOST_TURNED = 4
"""The maximum number of words in a name that is also compared with its words in another order."""
SHORTEST_CONTRACTION = 3
MOST_ENDINGS = 3
"""The maximum number of last words, in both names together, by which names with the same stem may
differ."""
_COUNTER = re.compile(r".*\d.*|.|[ivxlc]{1,4}", re.DOTALL | re.IGNORECASE)
"""A word that numbers things: a word with a digit, a single letter, or a Roman numeral."""


class NameKeys(NamedTuple):
    """The parts of a look that are used to find names that differ in one character.

    Each part has up to two thirds of the characters. One edit leaves at least one part unchanged.

    Attributes:
        start: the first two thirds.
        end: the last two thirds.
        edges: the first third and the last third.
    """

    start: str
    end: str
    edges: str


class NameDifference(NamedTuple):
    """The words in which two names differ, without the words that both names have before and after
    them.

    Attributes:
        stem: the words that both names have before the different words.
        is_at_end: True if no words follow.
    """

    one: tuple[str, ...]
    other: tuple[str, ...]
    stem: tuple[str, ...] = ()
    is_at_end: bool = True

    @property
    def is_one_word(self) -> bool:
        """True if the names differ in one word."""
        return len(self.one) == len(self.other) == 1


@lru_cache(maxsize=4096)
def split_words(name: str) -> tuple[str, ...]:
    """Split a name at spaces and punctuation, with plain characters."""
    plain = unicodedata.normalize("NFKD", fold_characters(name))
    return tuple(
        "".join(" " if unicodedata.category(char)[0] in "PZ" else char for char in plain).split()
    )


@lru_cache(maxsize=4096)
def compute_stem(name: str) -> str:
    """Compute the look of a name without its last word and without short words before it.

    At most three words are left out, and none that would leave fewer than four characters.
    """
    words, stem = split_words(name), compute_look(name)
    for count in range(1, MOST_ENDINGS + 1):
        rest = compute_look(" ".join(words[:-count]))
        if len(rest) < SHORTEST_STEM or (count > 1 and len(words[-count]) > LONGEST_ENDING):
            break
        stem = rest
    return stem


def compute_keys(look: str, length: int | None = None) -> NameKeys:
    """Compute the keys of a look. If a length is given, the keys find looks of that length that
    differ by one edit."""
    length = len(look) if length is None else length
    third, most = max(length - 1, 0) // 3, length * 2 // 3
    start = len(look) - third
    return NameKeys(look[:most], look[len(look) - most :], look[:third] + look[start:])


def list_keys(look: str) -> Iterator[NameKeys]:
    """List the keys that find all looks that differ by one edit."""
    for length in range(len(look) - 1, len(look) + 2):
        yield compute_keys(look, length)


def list_keys_after_articles(look: str) -> Iterator[NameKeys]:
    """List the keys that find all looks that have one more short word at the start."""
    return (compute_keys(look, len(look) + more) for more in range(1, LONGEST_ARTICLE + 1))


def can_be_near(look: str) -> bool:
    """Return True if the look is long enough to be compared letter by letter."""
    is_cased = look.isascii() or not any(unicodedata.category(char) == "Lo" for char in look)
    return len(look) >= (SHORTEST_NEAR if is_cased else SHORTEST_NEAR_OTHER)


def compare_words(one: str, other: str) -> NameDifference:
    """Find the words in which two names differ."""
    left, right = split_words(one), split_words(other)
    before = _count_same(left, right)
    after = _count_same(left[before:][::-1], right[before:][::-1])
    return NameDifference(
        left[before : len(left) - after],
        right[before : len(right) - after],
        left[:before],
        is_at_end=not after,
    )


def is_one_letter_apart(one: str, other: str) -> bool:
    """Return True if the looks of two names differ in one letter. An extra word does not count, and
    a difference between short words or between numbers, as in a series, does not count either."""
    look, near = compute_look(one), compute_look(other)
    if look == near or not (can_be_near(look) and can_be_near(near) and is_one_apart(look, near)):
        return False
    difference = compare_words(one, other)
    has_more_words = not (difference.one and difference.other)
    return not (has_more_words or is_series(difference) or is_between_codes(difference))


def cut_article(name: str) -> Iterator[str]:
    """Yield the name without a short first word."""
    words = split_words(name)
    if len(words) > 1 and len(words[0]) <= LONGEST_ARTICLE:
        yield " ".join(words[1:])


def is_article(difference: NameDifference) -> bool:
    """Return True if one name is the other after a short first word: `The Acme` and `Acme`."""
    words = (*difference.one, *difference.other)
    return (
        len(words) == 1
        and not difference.stem
        and not difference.is_at_end
        and len(words[0]) <= LONGEST_ARTICLE
        and words[0].isalpha()
    )


def is_abbreviation(difference: NameDifference) -> bool:
    """Return True if the names differ in one word that one of them abbreviates: to its beginning,
    as in *Corp*, or to some letters including the first and the last, as in *Ltd*."""
    if not difference.is_one_word:
        return False
    short, long = sorted((difference.one[0].casefold(), difference.other[0].casefold()), key=len)
    if len(short) > LONGEST_ENDING or len(long) == len(short):
        return False
    letters = iter(long)
    is_contraction = short[-1] == long[-1] and all(letter in letters for letter in short)
    return long.startswith(short) or (
        is_contraction and short[0] == long[0] and len(short) >= SHORTEST_CONTRACTION
    )


def list_turned(name: str) -> Iterator[str]:
    """List the variants of a short name with its words in another order: reversed or rotated."""
    words = split_words(name)
    if 1 < len(words) <= MOST_TURNED:
        yield " ".join(words[::-1])
        yield from (" ".join(words[at:] + words[:at]) for at in range(1, len(words)))


def is_turned(one: str, other: str) -> bool:
    """Return True if two names have the same words in another order."""
    left, right = ([compute_look(word) for word in split_words(name)] for name in (one, other))
    return left != right and sorted(left) == sorted(right)


def is_series(difference: NameDifference) -> bool:
    """Return True if the names differ only in words that number things: `Store 7` and `Store 8`."""
    words = (*difference.one, *difference.other)
    return bool(difference.one and difference.other) and all(map(_COUNTER.fullmatch, words))


def is_between_codes(difference: NameDifference) -> bool:
    """Return True if the names differ only in one short word, as in `Acme EU` and `Acme UK`."""
    return difference.is_one_word and all(
        len(word) <= LONGEST_CODE for word in (*difference.one, *difference.other)
    )


def _count_same(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Count the words at the start that are equal or have the same look."""
    pairs = enumerate(zip(one, other, strict=False))
    differ = (
        at
        for at, (a, b) in pairs
        if a.casefold() != b.casefold() and compute_look(a) != compute_look(b)
    )
    return next(differ, min(len(one), len(other)))
