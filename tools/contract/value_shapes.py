"""Shapes of values, which show what a value in a call names, regardless of its param's name.

Only a whole value has a shape: a sentence that contains an address is not a recipient.
"""

from __future__ import annotations

import json
import re
import unicodedata
from itertools import islice
from typing import Any

from tools.contract.account_numbers import find_accounts
from tools.contract.contacts import HOST, list_contacts
from tools.contract.look_alikes import fold_characters
from tools.contract.param_words import NamedThing
from tools.contract.spelled_addresses import list_readings

SMALLEST_NUMBER = 100
"""Smaller whole numbers are treated as plain counts."""
MAX_TEXT, MAX_WORDS = 20_000, 50
"""Only this many characters and words of a text are read."""
_MONEY_DECIMALS = 2
_LONGEST_PHONE = 15
_FEWEST_PHONE_DIGITS = 7
TIME = re.compile(
    r"\d{4}-\d\d(-\d\d)?([T ]\d\d:\d\d[\d:.Z+-]*)?|\d\d?:\d\d(:\d\d)?|-?\d{1,3}([.,]\d+)?%?"
)
"""A date, a time or a small number; these do not name anything."""
_DAY = re.compile(
    r"\d{4}-\d\d?(?:-\d\d?)?(?:[T ]\d\d?:\d\d.{0,16})?|\d\d?([./-])\d\d?\1(?:\d{4}|\d\d)"
)
_CLOCK = re.compile(r"\d\d?:\d\d(?::\d\d)?(?:\s?[ap]m)?", re.IGNORECASE)
_ADDRESS = re.compile(r"\w[@/\\:]+\w|\w\.\w|^[@#]\w|\w_\w")
_QUANTITY = re.compile(
    r"[+-]?(?:(?P<code>[A-Z]{3}\s)|(?P<before>[^\w\s.,+-])\s?)?"
    r"(?P<whole>\d{1,3}(?:[.,' ]\d{3})+|\d+)(?P<decimals>[.,]\d+)?(?P<space>\s?)(?P<after>[^\W\d_]{1,10}\.?|[^\w\s.,])?"
)
"""A number, alone or with one currency or unit."""
_CURRENCY_CODE = re.compile(r"[A-Z]{3}")
_PHONE = re.compile(r"\+?[\d\s()./-]+")
_ADDRESSES = (NamedThing.RECIPIENT, NamedThing.DESTINATION)
_WILDCARD = re.compile(r"[*%?]+|\S*[*]\S*")
_BETWEEN = re.compile(r"[\s,;|]+")
_PATH = re.compile(r"(?:~|\.{1,2})?(?:/|\\{2})")
"""The beginning of a path."""
_AROUND = "<>()[]{}\"'`.,:;!?"
_LABEL = re.compile(r"[^\W\d_][\w-]{0,19}:\s+")
"""A label before a value: `IBAN: DE89 …`."""
_CAPITAL_INSIDE = re.compile(r"[a-z][A-Z]")
_FEWEST_CAPITALS = 2
"""A word of letters with this many capitals inside it is a code, as in base64."""
_COMMANDS = (
    re.compile(r"\$\(\S|&&|\|\||\s\d?>{1,2}\s*[/~.][\w/]"),
    re.compile(r"^\s*(?:sudo\s+)?[a-z][\w./-]*\s+(?:-{1,2}[A-Za-z]|[/~]\S|\S[^|]*\|\s*[a-z])"),
    re.compile(r"^\s*[=+@-]?[\w.$]+\(.*\)\s*(?:;\s*)?$|[)\w\]]\s*=>\s*[\w({]"),
    re.compile(r"^\s*[\w.$\[\]\"']+\s*:?=\s*\S.*;\s*$|^#!\s*/|<(?:\?|%|script\b)"),
)
"""Patterns of lines of shell commands or of code."""
_SQL = re.compile(
    r"\s*(?:select\s+[\w*.,()\s\"]{1,200}?\sfrom\s+\S+\s*(?:;|$|where\b|join\b|limit\b|order\b|group\b)|insert\s+into\s"
    r"|update\s+\S+\s+set\s+\S+\s*=|delete\s+from\s+\S+|(?:drop|alter|truncate|create)\s+(?:table|database|schema|user"
    r"|role|view|index)\s|grant\s+\w+.{0,200}\sto\s|with\s+\w+\s+as\s*\()",
    re.IGNORECASE,
)


def _read_text(text: str) -> NamedThing:
    for reading in list_readings(text):
        plain = unicodedata.normalize("NFC", fold_figures(reading)).strip()
        if (found := _read_plain(plain)) is not NamedThing.NOTHING:
            return found
    return NamedThing.NOTHING


def read_shape(value: Any) -> NamedThing:
    """Return what the value names, judged by its shape; NOTHING for free text, flags, dates and
    plain counts."""
    if isinstance(value, str):
        return _read_text(value[:MAX_TEXT])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NamedThing.NOTHING
    fraction = repr(value).partition(".")[2]
    is_broken = isinstance(value, float) and not value.is_integer()
    if is_broken and abs(value) >= 1 and len(fraction) <= _MONEY_DECIMALS:
        return NamedThing.AMOUNT
    return NamedThing.UNKNOWN if abs(value) >= SMALLEST_NUMBER else NamedThing.NOTHING


def fold_figures(text: str) -> str:
    """Replace look-alikes like `fold_characters`, but keep letters that look like digits, such as
    the Cyrillic Ze: a word with such a letter is not an id."""
    if text.isascii():
        return text
    return "".join(map(_fold_figure, unicodedata.normalize("NFKC", text)))


def _fold_figure(char: str) -> str:
    folded = fold_characters(char)
    return char if char.isalpha() and folded.isdecimal() else folded


def is_name(text: str) -> bool:
    """Return True if the text has the shape of an id or an address: one word with digits, or with
    signs between its parts."""
    word = text.strip()
    if not word or any(char.isspace() for char in word) or TIME.fullmatch(word):
        return False
    return any(char.isdecimal() for char in word) or _ADDRESS.search(word) is not None


def is_time(text: str) -> bool:
    """Return True for a date, a time, or both."""
    return _DAY.fullmatch(text) is not None or _CLOCK.fullmatch(text) is not None


def is_currency(value: Any) -> bool:
    """Return True if the value looks like the code or sign of a currency: EUR, €."""
    if not isinstance(value, str):
        return False
    text = value.strip()
    is_sign = len(text) == 1 and unicodedata.category(text) == "Sc"
    return is_sign or _CURRENCY_CODE.fullmatch(text) is not None


def _read_plain(text: str) -> NamedThing:
    if not text or is_time(text):
        return NamedThing.NOTHING
    if _is_command(text):
        return NamedThing.COMMAND
    plain = _LABEL.sub("", text, count=1) if _LABEL.match(text) else text
    number = _read_number(plain)
    return _read_words(plain) if number is None else number


def _is_command(text: str) -> bool:
    """Return True for SQL, JSON, or text with commands on at least half of its lines."""
    lines = [line for line in text.splitlines() if line.strip()]
    hits = sum(any(pattern.search(line) for pattern in _COMMANDS) for line in lines)
    is_most = hits > 0 and 2 * hits >= len(lines)
    return is_most or _SQL.match(text) is not None or _is_json(text)


def _is_json(text: str) -> bool:
    """Return True for a JSON object or list that is not empty."""
    if text[:1] not in ("{", "["):
        return False
    try:
        return bool(json.loads(text))
    except ValueError:
        return False
    except RecursionError:
        return True


def _read_number(text: str) -> NamedThing | None:
    """Return what a number names, alone or with a unit; None for any other text."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        digits = sum(char.isdecimal() for char in text)
        is_phone = _PHONE.fullmatch(text) and text.startswith(("+", "(", "0"))
        fits = _FEWEST_PHONE_DIGITS <= digits <= _LONGEST_PHONE
        return NamedThing.RECIPIENT if is_phone and fits else None
    before, after = found["before"], found["after"]
    is_apart = found["space"] or not (after or "").isalpha()
    if found["code"] or is_currency(before) or (is_apart and is_currency(after)):
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
    """Return what a text of words names, if each word is an address or an id, or most of the text
    is addresses."""
    compact = "".join(filter(str.isalnum, text))
    if any(2 * len(account) >= len(compact) for account in find_accounts(text)):
        return NamedThing.ACCOUNT
    split = (each.strip(_AROUND) for each in _BETWEEN.split(text))
    words = list(islice(filter(None, split), MAX_WORDS))
    kinds = [_read_word(word) for word in words]
    if not kinds:
        return NamedThing.UNKNOWN if _WILDCARD.fullmatch(text) else NamedThing.NOTHING
    if NamedThing.NOTHING not in kinds:
        return min(kinds, key=list(NamedThing).index)
    addresses = [kind in _ADDRESSES for kind in kinds]
    length = sum(len(word) for word, is_address in zip(words, addresses, strict=True) if is_address)
    if length and 2 * length >= sum(map(len, words)):
        return kinds[addresses.index(True)]
    return NamedThing.NOTHING


def _read_word(word: str) -> NamedThing:
    """Return what a word names: an address, or an id."""
    if is_time(word) or TIME.fullmatch(word) or word == "@":
        return NamedThing.NOTHING
    if "@" in word:
        return NamedThing.RECIPIENT
    if "://" in word or _PATH.match(word):
        return NamedThing.DESTINATION
    if not is_name(word):
        is_code = len(_CAPITAL_INSIDE.findall(word)) >= _FEWEST_CAPITALS
        is_code = is_code or _WILDCARD.fullmatch(word) is not None
        return NamedThing.UNKNOWN if is_code else NamedThing.NOTHING
    is_host = any(contact.kind == HOST for contact in list_contacts(word))
    return NamedThing.DESTINATION if is_host else NamedThing.UNKNOWN
