"""Hosts that mix letters of several scripts, as look-alike addresses do."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from functools import lru_cache
from itertools import pairwise

from tools.contract.contacts import PUNYCODE, decode_host
from tools.contract.languages import LATIN, count_scripts, name_scripts
from tools.contract.odd_letters import passes_for_latin

FULL_WIDTH = "FULLWIDTH"
_DOT_BELOW = "\u0323"
_BELOW = frozenset(f"{_DOT_BELOW}\u0324\u0325\u032d\u0330\u0331")
"""Combining marks under a letter, which the line under a link hides."""
_WITH_DOTS_BELOW = frozenset({"vi", "yo", "ig"})
"""Codes of the languages whose ordinary letters have a dot below."""


def is_mixed_host(host: str, languages: Collection[str] = ()) -> bool:
    """Return True if the host mixes letters of several scripts, or if a letter has a mark below it
    that the languages do not have.

    A label that is wholly in the script of one of the languages, as in `例え.jp`, is ordinary
    unless it passes for a Latin label.

    Args:
        languages: codes of the languages in which such hosts are ordinarily written, e.g. `ja`.
    """
    if PUNYCODE in host.lower():
        host = decode_host(host)
    if not host.isascii():
        odd = _BELOW if _WITH_DOTS_BELOW.isdisjoint(languages) else _BELOW - {_DOT_BELOW}
        letters = unicodedata.normalize("NFD", unicodedata.normalize("NFC", host))
        if any(below in odd and letter.isascii() for letter, below in pairwise(letters)):
            return True
    names = set() if host.isascii() else {_name_kind(char) for char in host if char.isalpha()}
    usual = {LATIN, *name_scripts(languages)}
    return len(names) > 1 and not (
        FULL_WIDTH not in names and all(_is_in_script(label, usual) for label in host.split("."))
    )


def _is_in_script(label: str, scripts: Collection[str]) -> bool:
    found = set(count_scripts(label))
    return len(found) < 2 and found <= set(scripts) and not passes_for_latin(label)


@lru_cache(maxsize=4096)
def _name_kind(letter: str) -> str:
    return unicodedata.name(letter, "UNKNOWN").partition(" ")[0]
