"""Credentials in the values of a call: passwords, keys and tokens, recognized by the param's name
and the value's shape."""

from __future__ import annotations

import re
from base64 import b64decode
from typing import Any

from tools.caches import cache_by_text
from tools.contract.host_endings import ENDINGS
from tools.contract.param_words import (
    names_key,
    names_number_code,
    names_password,
    names_secret,
)

LONGEST_STAND_IN = 100
SHORTEST_SECRET, SECRET_LENGTH, SECRET_CLASSES, MAX_WORD = 8, 20, 3, 1_000
SHORTEST_RUN = 12
"""The minimum number of characters of a token that are not in words or short numbers."""
_FORMS = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY"
    r"|\b(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-[\w-]{1,40}|sk-[\w-]{1,40}@openssh\.com) AAAA[\w+/]{12}"
    r"|(?<![\w-])eyJ[\w-]{8,2000}\.eyJ[\w-]{8}"
    r"|\bAIza[\w-]{30}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAGE-SECRET-KEY-1\w{16}"
    r"|\b[a-z][a-z0-9+.-]{1,20}://[^\s:/?#@]{0,99}:[^\s/?#@]{1,99}@"
)
"""The forms of private and public keys, signed tokens, known services' tokens, and addresses with a
password."""
_PREFIXED = re.compile(
    r"\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|shpat_|dop_v1_|npm_|hf_|pypi-|SG\.|[spr]k_(?:live|test)_|whsec_|sk-"
    r"|(?i:bearer) )(?=[\w+/.=-]{0,60}\d)([\w+/.=-]{16,500})"
)
"""Tokens after the prefix of a known service or the name of a scheme."""
_BASIC = re.compile(r"\b(?i:basic) ([A-Za-z0-9+/]{4,2000})={0,2}(?![\w+/.-])")
"""A user and a password in an HTTP header, in Base64."""
_ASSIGNED = re.compile(
    r"^(?:export )?-{0,2}([A-Za-z][\w-]{0,60})=([\"']?)(\S{1,200})\2\s?$", re.MULTILINE
)
"""A line with a variable: `DB_PASSWORD=…`."""
_STAND_IN = re.compile(
    r"(.)\1{2,}|\$?\{\{.*\}\}|\$\{.*\}|\$\(.*\)|\$[A-Z_]+|\$[a-z_]+|%[A-Z_]+%"
    r"|\?|:[a-z_]+|%s|%\([a-z_]+\)s|(?i:true|false|yes|no)"
    r"|<%.*%>|<[a-z]+:[\w./ -]+>|[{<\[](?:[^\W\d]|[ .-])+[}>\]]",
    re.DOTALL,
)
"""A placeholder for a credential: `****`, `{{ password }}`, `$PASSWORD`, `[hidden]`."""
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://|(?:~|\.{1,2})/[\w./ -]*$|/[\w. -]+/[\w./ -]*$")
_EMAIL = re.compile(r"[\w.+-]+@[\w.-]+\.([\w-]+)")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PARTS = re.compile(r"[\W_]+")
_WORD = re.compile(r"\d{0,4}[^\W\d]*\d{0,4}|\d{1,10}|\d{8}[Tt]\d{4,6}[Zz]?")
_MIXED = re.compile(r"(?=\D*\d)(?=\d*[^\W\d])")
MIN_PARTS = 3
_SHORTEST_CODE, _LONGEST_CODE = 3, 10


def is_credential(name: str, value: Any) -> bool:
    """Return True if the value is a credential: by its form alone, or by the name of its param
    together with a suitable form."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return False
    if isinstance(value, int) or (len(value) <= _LONGEST_CODE and value.isdecimal()):
        return _is_code(name, str(value))
    return has_token(value) or _is_named(name, value) or _assigns_credential(value)


def _is_code(name: str, digits: str) -> bool:
    if len(digits) < _SHORTEST_CODE:
        return False
    return names_password(name) or (len(digits) <= _LONGEST_CODE and names_number_code(name))


def _is_named(name: str, text: str) -> bool:
    """Return True if the name says that this text is a credential, and its form fits."""
    if not is_filled(text):
        return False
    if names_secret(name):
        return len(text) >= SHORTEST_SECRET and _is_word(text) and "digit" in _list_classes(text)
    return names_password(name) or (names_key(name) and may_be_secret(text) and _is_random(text))


def _assigns_credential(text: str) -> bool:
    """Return True if a line of the text gives a credential to a variable."""
    return "=" in text and any(_is_named(name, value) for name, _, value in _ASSIGNED.findall(text))


def is_filled(text: str) -> bool:
    """Return True if the text is neither empty nor an address nor a placeholder."""
    plain = text.strip()
    is_stand_in = len(plain) <= LONGEST_STAND_IN and _STAND_IN.fullmatch(plain)
    return bool(plain) and not is_stand_in and not _is_address(plain)


def _is_address(text: str) -> bool:
    email = _EMAIL.fullmatch(text)
    return _ADDRESS.match(text) is not None or (
        email is not None and email[1].casefold() in ENDINGS
    )


@cache_by_text
def has_token(text: str) -> bool:
    """Return True if the text contains a key or token of a known form."""
    return (
        _FORMS.search(text) is not None
        or any(_count_random(each) >= SHORTEST_RUN for each in _PREFIXED.findall(text))
        or any(map(_holds_password, _BASIC.findall(text)))
    )


def _holds_password(encoded: str) -> bool:
    """Return True if Base64 encodes a name and a password with a colon between them."""
    try:
        plain = b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except ValueError:
        return False
    return ":" in plain and plain.isprintable()


def _count_random(text: str) -> int:
    """Count the characters of a text that are not in words, short numbers or ids."""
    parts = _PARTS.split(_UUID.sub("", text))
    return sum(len(part) for part in parts if not _is_ordinary(part))


def _is_ordinary(part: str) -> bool:
    """Return True for a word, a short number or a time. A long word must not mix cases."""
    is_long = len(part) >= SECRET_LENGTH
    return _WORD.fullmatch(part) is not None and (
        not is_long or part.isupper() or part[1:].islower()
    )


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
    word = text[:MAX_WORD].removeprefix("Bearer ")
    return len(text) >= SECRET_LENGTH and (
        _count_random(text[:MAX_WORD]) >= SHORTEST_RUN or _has_equal_parts(word)
    )


def _has_equal_parts(word: str) -> bool:
    """Return True for letters and digits in one part or in several parts of one length, as in a
    license key; False for paths and dotted names."""
    parts = _PARTS.split(_UUID.sub("", word))
    return (
        "/" not in word
        and "." not in word
        and (len(parts) >= MIN_PARTS or len(parts[0]) >= SECRET_LENGTH)
        and len(set(map(len, parts))) == 1
        and all(_MIXED.match(part) for part in parts)
    )


def _is_word(text: str) -> bool:
    return not any(char.isspace() for char in text)


def _list_classes(word: str) -> set[str]:
    return {
        "upper" if char.isupper() else "digit" if char.isdigit() else
        "lower" if char.isalpha() else "other"
        for char in word
    }  # fmt: skip
