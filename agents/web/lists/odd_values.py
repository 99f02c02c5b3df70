"""The odd one out in a group of cards: a host, a domain, an alphabet or a number far from all the others."""

from __future__ import annotations

import statistics
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

COMMON_SHARE = 0.7
"""The share of a group that has to agree before the others are odd."""
MIN_COMMON = 3
FAR = 10.0
"""A number is odd if it is this many times farther from the median than half of the others."""


def find_oddities(params: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say for each of these flat params which value differs from the others: `email: different domain`.

    Empty for most. The result is in the order of the params.
    """
    found: list[list[str]] = [[] for _ in params]
    for name in dict.fromkeys(name for each in params for name in each):
        values = [each.get(name) for each in params]
        for word, odd in (*_find_odd_kinds(values), ("unusual number", _find_far_numbers(values))):
            for index in odd:
                found[index].append(f"{name.rpartition('.')[2]}: {word}")
    return [", ".join(dict.fromkeys(each)) for each in found]


def _find_odd_kinds(values: Sequence[Any]) -> list[tuple[str, list[int]]]:
    """Find, for each way of sorting texts into kinds, the indices of the values of a rare kind."""
    texts = {index: value for index, value in enumerate(values) if isinstance(value, str) and value}
    found = []
    for word, sort in KINDS:
        kinds = {index: kind for index, text in texts.items() if (kind := sort(text))}
        found.append((word, _find_rare(kinds)))
    return found


def _find_rare(kinds: Mapping[int, str]) -> list[int]:
    if not kinds:
        return []
    common, count = Counter(kinds.values()).most_common(1)[0]
    if count < MIN_COMMON or count < COMMON_SHARE * len(kinds):
        return []
    return [index for index, kind in kinds.items() if kind != common]


def _find_far_numbers(values: Sequence[Any]) -> list[int]:
    numbers = {i: float(v) for i, v in enumerate(values) if isinstance(v, int | float) and not isinstance(v, bool)}
    if len(numbers) <= MIN_COMMON:
        return []
    middle = statistics.median(numbers.values())
    spread = statistics.median(abs(number - middle) for number in numbers.values())
    usual = max(spread, abs(middle) * 0.05, 1e-9)
    return [index for index, number in numbers.items() if abs(number - middle) > FAR * usual]


def _get_domain(text: str) -> str:
    local, at, domain = text.strip().rpartition("@")
    return domain.casefold() if at and local and "." in domain and " " not in domain else ""


def _get_host(text: str) -> str:
    if "://" not in text:
        return ""
    try:
        return (urlsplit(text.strip()).hostname or "").casefold()
    except ValueError:
        return "no host"


@lru_cache(maxsize=4096)
def _get_alphabet(text: str) -> str:
    """Return the alphabet of most letters, by the first word of their Unicode names; empty without letters."""
    names = (unicodedata.name(char, "UNKNOWN").partition(" ")[0] for char in text if char.isalpha())
    counts = Counter(names)
    return counts.most_common(1)[0][0] if counts else ""


KINDS: Sequence[tuple[str, Callable[[str], str]]] = (
    ("different domain", _get_domain),
    ("different host", _get_host),
    ("different alphabet", _get_alphabet),
)
