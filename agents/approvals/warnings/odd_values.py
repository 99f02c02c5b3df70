"""Find the odd values in a group of cards, or among the values of one card: a domain, host or
alphabet that few have, or a number far from the others."""

from __future__ import annotations

import statistics
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from tools.caches import cache_by_text
from tools.contract.outside_text import quote_excerpt

COMMON_PERCENT = 70
"""The percentage of a group that must agree before the other cards are considered odd."""
MIN_COMMON = 3
MAX_LISTED = 100
"""The maximum number of values of one list that are compared."""
MAX_TEXT = 200
"""The maximum number of characters of a text that are compared on one card."""
MAX_NUMBER = 1e300
"""The largest number that is compared; far larger integers cannot be converted."""
FAR = 10.0
"""A number is odd if its distance from the median is more than this many times the usual
distance."""


def find_oddities(params: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return, for each card, a text that names the odd values in its flat params, such as
    `different domain in “email”`; empty if there are none.

    The texts have the same order as the params.
    """
    found: list[list[str]] = [[] for _ in params]
    for name in dict.fromkeys(name for each in params for name in each):
        values = [list(islice(_walk(each.get(name)), MAX_LISTED)) for each in params]
        for word, odd in (*_find_odd_kinds(values), ("unusual number", _find_far_numbers(values))):
            for index in odd:
                found[index].append(f"{word} in {quote_excerpt(name.rpartition('.')[2])}")
    return [", ".join(dict.fromkeys(each)) for each in found]


def find_odd_entries(entries: Sequence[Any]) -> set[int]:
    """Find the indices of the values on one card that differ from most others: in the value itself,
    its type, length, domain, host or alphabet, or as a number far from the others."""
    values = [
        [
            one[:MAX_TEXT] if isinstance(one, str) else one
            for one in islice(_walk(entry), MAX_LISTED)
        ]
        for entry in entries
    ]
    odd = {index for _, found in _find_odd_kinds(values) for index in found}
    descriptions: tuple[Callable[[Any], str], ...] = (str, _describe_form)
    for describe in descriptions:
        odd.update(_find_rare([{describe(one) for one in each} for each in values]))
    return odd.union(_find_far_numbers(values))


def _describe_form(value: Any) -> str:
    """Describe the type of a value and, in powers of two, the length of a text."""
    return f"{type(value).__name__} {len(value).bit_length() if isinstance(value, str) else ''}"


def _walk(value: Any) -> Iterator[Any]:
    """Yield the value itself, or each value inside a list and inside the objects of a list."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, list):
            stack += reversed(one)
        elif isinstance(one, dict):
            stack += reversed(one.values())
        else:
            yield one


def _find_odd_kinds(values: Sequence[Sequence[Any]]) -> list[tuple[str, list[int]]]:
    """For each way of sorting texts into kinds, find the indices of the cards that have a rare
    kind."""
    texts = [[one for one in each if isinstance(one, str) and one] for each in values]
    found = []
    for word, sort in KINDS:
        kinds = [{kind for text in each if (kind := sort(text))} for each in texts]
        found.append((word, _find_rare(kinds)))
    return found


def _find_rare(kinds: Sequence[Set[str]]) -> list[int]:
    """Find the indices of the cards with a kind that few cards have; return none unless most cards
    share one kind."""
    counts = Counter(kind for each in kinds for kind in each)
    total = sum(1 for each in kinds if each)
    most = max(counts.values(), default=0)
    if most < MIN_COMMON or most * 100 < COMMON_PERCENT * total:
        return []
    rare = {kind for kind, count in counts.items() if count * 100 <= (100 - COMMON_PERCENT) * total}
    return [index for index, each in enumerate(kinds) if each & rare]


def _find_far_numbers(values: Sequence[Sequence[Any]]) -> list[int]:
    numbers = [
        (index, float(one))
        for index, each in enumerate(values)
        for one in each
        if isinstance(one, int | float) and not isinstance(one, bool) and abs(one) <= MAX_NUMBER
    ]
    if len({index for index, _ in numbers}) <= MIN_COMMON:
        return []
    middle = statistics.median(number for _, number in numbers)
    spread = statistics.median(abs(number - middle) for _, number in numbers)
    usual = max(spread, abs(middle) * 0.05, 1e-9)
    return list(
        dict.fromkeys(index for index, number in numbers if abs(number - middle) > FAR * usual)
    )


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


@cache_by_text
def _get_alphabet(text: str) -> str:
    """Return the alphabet to which most of the letters belong, such as LATIN; empty if there are no
    letters."""
    names = (unicodedata.name(char, "UNKNOWN").partition(" ")[0] for char in text if char.isalpha())
    counts = Counter(names)
    return counts.most_common(1)[0][0] if counts else ""


KINDS: Sequence[tuple[str, Callable[[str], str]]] = (
    ("different domain", _get_domain),
    ("different host", _get_host),
    ("different alphabet", _get_alphabet),
)
