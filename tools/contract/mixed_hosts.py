"""Hosts that mix letters of several scripts, as look-alike addresses do."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from functools import lru_cache

from tools.contract.contacts import PUNYCODE, decode_host
from tools.contract.languages import LATIN, count_scripts, name_scripts
from tools.contract.odd_letters import passes_for_latin

FULL_WIDTH = "FULLWIDTH"


def is_mixed_host(host: str, languages: Collection[str] = ()) -> bool:
    """Return True if the host mixes letters of several scripts.

    A label that is wholly in the script of one of the languages, as in `例え.jp`, is ordinary
    unless it passes for a Latin label.

    Args:
        languages: codes of the languages in which such hosts are ordinarily written, e.g. `ja`.
    """
    if PUNYCODE in host.lower():
        host = decode_host(host)
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
