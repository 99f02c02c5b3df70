"""Credentials in the values of a call: passwords, keys and tokens, recognized by the param's name
and the value's shape."""

from __future__ import annotations

import re
from typing import Any

from tools.caches import cache_by_text
from tools.contract.param_words import (
    names_key,
    names_number_code,
    names_password,
    names_secret,
)

MAX_READ = 20_000
"""The maximum number of characters of a text that are read."""
LONGEST_STAND_IN = 100
SHORTEST_SECRET, SECRET_LENGTH, SECRET_CLASSES, MAX_WORD = 8, 20, 3, 1_000
_TOKENS = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY"
    r"|\b(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-[\w-]{1,40}|sk-[\w-]{1,40}@openssh\.com) AAAA[\w+/]{12}"
    r"|\beyJ[\w-]{8,500}\.eyJ[\w-]{8}"
    r"|\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|shpat_|dop_v1_|npm_|hf_|pypi-|SG\.|[spr]k_(?:live|test)_|whsec_|sk-)"
    r"(?=[\w.-]{0,60}\d)[\w.-]{16}"
    r"|\bAIza[\w-]{30}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\bAGE-SECRET-KEY-1\w{16}|\b(?:Bearer|Basic) (?=[\w+/.=-]*\d)[\w+/.=-]{16}"
    r"|\b[a-z][a-z0-9+.-]{1,20}://[^\s:/?#@]{0,99}:[^\s/?#@]{1,99}@"
)
"""The forms of private and public keys, signed tokens, known services' tokens, HTTP headers, and
addresses with a password."""
_STAND_IN = re.compile(r"(.)\1{2,}|\$?\{+.*\}+|<.*>|\[.*\]", re.DOTALL)
"""A placeholder for a credential: `****`, `{{ password }}`, `[hidden]`."""
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://|[\w.+-]+@[\w.-]+$|[~.]{0,2}/")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NUMBER_CODE = re.compile(r"\d{3,10}")


def is_credential(name: str, value: Any) -> bool:
    """Return True if the value is a credential: by its form alone, or by the name of its param
    together with a suitable form."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return False
    text = str(value)[:MAX_READ]
    if _NUMBER_CODE.fullmatch(text):
        return names_number_code(name) or names_password(name)
    return isinstance(value, str) and (has_token(text) or _is_named(name, text))


def _is_named(name: str, text: str) -> bool:
    """Return True if the name says that this text is a credential, and its form fits."""
    if not is_filled(text):
        return False
    if names_secret(name):
        return len(text) >= SHORTEST_SECRET and _is_word(text) and "digit" in _list_classes(text)
    return names_password(name) or (names_key(name) and may_be_secret(text) and _is_random(text))


def is_filled(text: str) -> bool:
    """Return True if the text is neither empty nor an address nor a placeholder."""
    plain = text.strip()
    is_stand_in = len(plain) <= LONGEST_STAND_IN and _STAND_IN.fullmatch(plain)
    return bool(plain) and not is_stand_in and not _ADDRESS.match(plain)


@cache_by_text
def has_token(text: str) -> bool:
    """Return True if the text contains a key or token of a known form."""
    return _TOKENS.search(text) is not None


def may_be_secret(value: Any) -> bool:
    """Return True for one long word of letters and digits, or for a shorter word with several kinds
    of characters. Passwords, tokens and many ids look like this."""
    if not isinstance(value, str) or len(value) < SHORTEST_SECRET:
        return False
    word = value[:MAX_WORD].removeprefix("Bearer ")
    if not _is_word(word):
        return value.startswith("-----BEGIN ")
    kinds = _list_classes(word)
    return "digit" in kinds and (
        len(kinds) >= SECRET_CLASSES or (len(word) >= SECRET_LENGTH and len(kinds) > 1)
    )


def _is_random(text: str) -> bool:
    return len(text) >= SECRET_LENGTH and not _UUID.fullmatch(text)


def _is_word(text: str) -> bool:
    return not any(char.isspace() for char in text)


def _list_classes(word: str) -> set[str]:
    return {
        "upper" if char.isupper() else "digit" if char.isdigit() else
        "lower" if char.isalpha() else "other"
        for char in word
    }  # fmt: skip
