"""Shapes of values: what a single value of a call names, whatever its param is called.

Only a whole value counts: an address in a sentence makes no recipient of the sentence.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any

from tools.contract.accounts import find_accounts
from tools.contract.contacts import HOST, list_contacts
from tools.contract.look_alikes import fold_characters
from tools.contract.name_words import NamedThing
from tools.contract.spelled_addresses import list_readings

SMALLEST_NUMBER = 100
"""Smaller whole numbers are plain counts."""
MAX_TEXT = 20_000
"""Only this many characters of a text are read."""
_MONEY_DECIMALS = 2
_LONGEST_PHONE = 15
_FEWEST_PHONE_DIGITS = 7
TIME = re.compile(
    r"\d{4}-\d\d(-\d\d)?([T ]\d\d:\d\d[\d:.Z+-]*)?|\d\d?:\d\d(:\d\d)?|-?\d{1,3}([.,]\d+)?%?"
)
"""A date, a time or a small number, which names nothing."""
_DAY = re.compile(
    r"\d{4}-\d\d?(?:-\d\d?)?(?:[T ]\d\d?:\d\d.{0,16})?|\d\d?([./-])\d\d?\1(?:\d{4}|\d\d)"
)
_CLOCK = re.compile(r"\d\d?:\d\d(?::\d\d)?(?:\s?[ap]m)?", re.IGNORECASE)
_ADDRESS = re.compile(r"\w[@/\\:]+\w|\w\.\w|^[@#]\w|\w_\w")
_QUANTITY = re.compile(
    r"[+-]?(?P<before>[A-Z]{3}|[^\w\s.,+-])?\s?(?P<whole>\d{1,3}(?:[.,' ]\d{3})+|\d+)(?P<decimals>[.,]\d+)?"
    r"(?P<space>\s?)(?P<after>[^\W\d_]{1,10}\.?|[^\w\s.,])?"
)
"""A number, alone or with one currency or unit."""
_CURRENCY_CODE = re.compile(r"[A-Z]{3}")
_PHONE = re.compile(r"\+?[\d\s()./-]+")
_LABELED = re.compile(r"[^<>]{0,200}<[^<>\s]+>")
"""A name with an address behind it: `Ann <ann@acme.example>`."""
_WILDCARD = re.compile(r"[*%?]+|\S*[*]\S*")
_BETWEEN = re.compile(r"[\s,;|]+")
_BEGINNINGS = ("/", "\\\\", "~/", "./", "../")
"""The beginnings of paths."""
_AROUND = "<>()[]{}\"'`.,:;!?"
_SHELL = re.compile(
    r"\$[({]\S|&&|\|\||`[^`]+`|(?:[^\s|]\s*\|\s*[a-z]|[^\s>]\s+\d?>{1,2}\s*[\w/~])|^\s*[a-z][\w./-]*\s+(?:-{1,2}[A-Za-z]|[/~]\S)",
    re.MULTILINE,
)
_SQL = re.compile(
    r"^\s*(?:select\s+[\w*.,()\s\"]{1,200}?\sfrom\s+\S+\s*(?:;|$|where\b|join\b|limit\b|order\b|group\b)|insert\s+into\s"
    r"|update\s+\S+\s+set\s+\S+\s*=|delete\s+from\s+\S+|(?:drop|alter|truncate|create)\s+(?:table|database|schema|user"
    r"|role|view|index)\s|grant\s+\w+.{0,200}\sto\s|with\s+\w+\s+as\s*\()",
    re.IGNORECASE | re.MULTILINE,
)
_CODE = re.compile(
    r"^\s*[=+@-]?[\w.$]+\(.*\)\s*;?\s*$|[)\w\]]\s*=>\s*[\w({]|^\s*[\w.$\[\]\"']+\s*:?=\s*\S.*;\s*$|^#!\s*/|<(?:\?|%|script\b)",
    re.MULTILINE,
)
_STRUCTURE = re.compile(r"\s*(?:\{.*\}|\[.*\])\s*", re.DOTALL)


@lru_cache(maxsize=4096)
def _read_text(text: str) -> NamedThing:
    for reading in list_readings(text):
        plain = unicodedata.normalize("NFC", fold_characters(reading)).strip()
        if (found := _read_plain(plain)) is not NamedThing.NOTHING:
            return found
    return NamedThing.NOTHING


def read_shape(value: Any) -> NamedThing:
    """Return what the value names by its shape; NOTHING for free text, flags, dates and plain
    counts."""
    if isinstance(value, str):
        return _read_text(value[:MAX_TEXT])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NamedThing.NOTHING
    fraction = repr(value).partition(".")[2]
    is_broken = isinstance(value, float) and not value.is_integer()
    if is_broken and abs(value) >= 1 and len(fraction) <= _MONEY_DECIMALS:
        return NamedThing.AMOUNT
    return NamedThing.UNKNOWN if abs(value) >= SMALLEST_NUMBER else NamedThing.NOTHING


def is_name(text: str) -> bool:
    """Return True for a text that has the shape of an id or an address: one word with digits, or
    with signs between its parts."""
    word = text.strip()
    if not word or any(char.isspace() for char in word) or TIME.fullmatch(word):
        return False
    return any(char.isdecimal() for char in word) or _ADDRESS.search(word) is not None


def is_time(text: str) -> bool:
    """Return True for a date, a time, or both."""
    return _DAY.fullmatch(text) is not None or _CLOCK.fullmatch(text) is not None


def is_currency(value: Any) -> bool:
    """Return True for a value like the code or the sign of a currency: EUR, €."""
    if not isinstance(value, str):
        return False
    text = value.strip()
    is_sign = len(text) == 1 and unicodedata.category(text) == "Sc"
    return is_sign or _CURRENCY_CODE.fullmatch(text) is not None


def _read_plain(text: str) -> NamedThing:
    if not text or is_time(text):
        return NamedThing.NOTHING
    if any(pattern.search(text) for pattern in (_SHELL, _SQL, _CODE)) or _STRUCTURE.fullmatch(text):
        return NamedThing.COMMAND
    number = _read_number(text)
    return _read_words(text) if number is None else number


def _read_number(text: str) -> NamedThing | None:
    """Return what a number names, alone or with a unit; None for any other text."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        digits = sum(char.isdecimal() for char in text)
        is_phone = _PHONE.fullmatch(text) and text.startswith(("+", "(", "0"))
        fits = _FEWEST_PHONE_DIGITS <= digits <= _LONGEST_PHONE
        return NamedThing.RECIPIENT if is_phone and fits else None
    before, after = found["before"], found["after"]
    if is_currency(before) or is_currency(after):
        return NamedThing.AMOUNT
    if before or (after and after != "%" and not found["space"]):
        return None
    return _read_quantity(found)


def _read_quantity(found: re.Match[str]) -> NamedThing:
    digits, after = "".join(filter(str.isdecimal, found["whole"])), found["after"]
    if after == "%":
        return NamedThing.NOTHING
    if len(found["decimals"] or "") == 1 + _MONEY_DECIMALS:
        return NamedThing.AMOUNT
    if len(digits) > _LONGEST_PHONE:
        return NamedThing.ACCOUNT
    is_code = len(digits) > 1 and digits.startswith("0")
    if not is_code and int(digits) < SMALLEST_NUMBER:
        return NamedThing.NOTHING
    return NamedThing.AMOUNT if after else NamedThing.UNKNOWN


def _read_words(text: str) -> NamedThing:
    """Return what a text of words names: each word must be an address or an id."""
    if _LABELED.fullmatch(text):
        return NamedThing.RECIPIENT
    compact = "".join(char for char in text if char.isalnum()).casefold()
    if any(account.casefold() == compact for account in find_accounts(text)):
        return NamedThing.ACCOUNT
    words = [word.strip(_AROUND) for word in _BETWEEN.split(text)]
    kinds = {_read_word(word) for word in words if word}
    if not kinds:
        return NamedThing.UNKNOWN if _WILDCARD.fullmatch(text) else NamedThing.NOTHING
    return (
        NamedThing.NOTHING
        if NamedThing.NOTHING in kinds
        else min(kinds, key=list(NamedThing).index)
    )


def _read_word(word: str) -> NamedThing:
    """Return what a word names: an address, or an id."""
    if is_time(word) or TIME.fullmatch(word) or word == "@":
        return NamedThing.NOTHING
    if "@" in word:
        return NamedThing.RECIPIENT
    if "://" in word or word.startswith(_BEGINNINGS):
        return NamedThing.DESTINATION
    if not is_name(word):
        return NamedThing.UNKNOWN if _WILDCARD.fullmatch(word) else NamedThing.NOTHING
    is_host = any(contact.kind == HOST for contact in list_contacts(word))
    return NamedThing.DESTINATION if is_host else NamedThing.UNKNOWN
