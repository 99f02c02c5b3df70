"""Values that stand for everything: wildcards, patterns that match any text, and networks that
contain all addresses."""

from __future__ import annotations

import re
from urllib.parse import unquote

from tools.caches import cache_by_text
from tools.contract.look_alikes import fold_characters
from tools.schemas.patterns import compile_linear_pattern

MAX_TEXT = 80
"""The maximum number of characters in a wildcard; longer texts are prose or code."""
_SAMPLES = ("a", "Zq7 x", "7-é_:")
"""Texts with nothing in common: a pattern that matches each of them matches any text."""
_GLOB = re.compile(r"(?P<place>[^*\s]*[/\\.:])?(?:\*{1,2}[/\\.:])*\*{1,2}")
"""Wildcards alone, or everything in a place: `*`, `reports/**/*`, `repo:*`. A wildcard after
letters, such as `A*`, is a part of a name, and three or more stars stand for hidden text."""
_AROUND = " \t\n\"'"
_VERSION = re.compile(r"[\dvV^~<>=.]*\d\.")
_ANY_IN_QUERY = re.compile(r"_?%{1,2}")
_ALL_ADDRESSES = re.compile(r"[\d.:a-fA-F]*[.:][\d.:a-fA-F]*/0")
_SEEMS_PATTERN = re.compile(r"^\^.*[*+|?{]|[*+|?{].*\$$|[.\]})][*+{?]|\\[A-Za-z][*+{]")


@cache_by_text
def stands_for_all(text: str) -> bool:
    """Return True if the text stands for everything: `*`, `%`, `.*`, `reports/**/*`, `0.0.0.0/0`.

    Only the shape of the whole text matters. A word such as *all* does not stand for everything,
    and `*.pdf` does not either, because it leaves something out.
    """
    if len(text) > MAX_TEXT:
        return False
    value = unquote(fold_characters(text)).strip(_AROUND)
    if not value:
        return False
    if (glob := _GLOB.fullmatch(value)) is not None:
        return not _VERSION.fullmatch(glob["place"] or "")
    if _ANY_IN_QUERY.fullmatch(value) or _ALL_ADDRESSES.fullmatch(value):
        return True
    return _SEEMS_PATTERN.search(value) is not None and _matches_all(value)


def _matches_all(pattern: str) -> bool:
    compiled = compile_linear_pattern(pattern)
    if compiled is None:
        return False
    is_anchored = pattern.startswith("^") or pattern.endswith("$")
    match = compiled.search if is_anchored else compiled.fullmatch
    return all(map(match, _SAMPLES))
