"""Look-alike signs beside digits, and characters that pass for digits or minus signs in amounts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from functools import lru_cache

from tools.contract.confusables import CURRENCY_TWINS
from tools.contract.languages import may_be_east_asian, name_script, name_scripts
from tools.contract.look_alikes import LOOKS
from tools.contract.odd_numbers import ROMAN, get_kind

Found = tuple[int, int, frozenset[str]]
MINUS = "\N{MINUS SIGN}"
WRITTEN_WITH_MINUS = frozenset(
    {"et", "eu", "fi", "fo", "gsw", "hr", "lt", "nb", "nn", "no", "rm", "se", "sl", "sv"}
)
"""Languages in which negative numbers have the sign U+2212, by Unicode's CLDR."""
LONGEST_AMOUNT = 60
_SIGNS = frozenset("+-")
_STYLED_FORMS = ("<wide>", "<small>")
_HEAVY = "HEAVY "
_CURRENCIES = "".join(
    char for char in map(chr, range(0x24, 0x10000)) if unicodedata.category(char) == "Sc"
)
_CURRENCY = rf"(?:[{_CURRENCIES}]|[A-Z]{{3}}(?![A-Za-z]))"
_LETTERS = "OoIl|"
"""The letters and the sign that are read as the digits 0 and 1."""
_AMOUNT = re.compile(
    rf"\(?[+-]?\s?{_CURRENCY}?\s?[+-]?(?P<figures>[\d{_LETTERS}][\d{_LETTERS}.,'\s]*?)"
    rf"(?P<sign>[+-]?)(?P<unit>\s?l)?\s?(?:{_CURRENCY}|%)?\)?"
)
_BESIDE_CURRENCY = re.compile(
    rf"(?:(?<=[{_CURRENCIES}])|(?<=[{_CURRENCIES}]\s))\d?[OoIl][\dOoIl.,]*\d(?!\w)"
    rf"|(?<![\w.,-])(?:\d?[OoIl][\dOoIl.,]*\d(?=\s?[{_CURRENCIES}])"
    r"|(?:l\d[\dOoIl.,]*\d|\d[Oo]\d)(?=\s[A-Z]{3}\b))"
)
"""A number beside a currency that begins with a letter, or has one after its first digit: `€l00`,
`l00 EUR`, `1o5 EUR`."""
_REGULAR_FIGURES = re.compile(
    r"\d+(?:[.,]\d*)?|\d{1,3}([\s'.,])\d{3}(?:\1\d{3})*(?:(?!\1)[.,]\d*)?"
    r"|\d{1,2}(?:,\d\d)+,\d{3}(?:\.\d*)?|\d(?:,\d){2,}|\d\d(?:,\d\d){2,}"
    r"|[1-9]\d?(?:,[1-9]\d?){2,}|.*[.,]\s.*"
)
"""Groups of three digits, the groups of India (`1,00,000`), or a list of numbers, with or without
decimals."""
_FALSE_THOUSANDS = re.compile(r"[1-9]\d{0,2},\d+000")
"""A number whose decimals pass for thousands: `1,0000`."""
_NO_CENTS = re.compile(r"(?<=\d[.,])[\u2012-\u2014\u2212]{1,2}(?!\s?\d)")
"""A dash in place of the cents, as in `100,\u2013 €`."""


def find_led_numbers(text: str) -> Iterator[Found]:
    """Yield the numbers beside a currency that have a letter that is read as a digit at their
    start: `€l00`."""
    for found in _BESIDE_CURRENCY.finditer(text):
        yield found.start(), found.end(), frozenset(found[0]) & frozenset(_LETTERS)


def find_odd_signs(text: str, languages: Collection[str]) -> Iterator[Found]:
    """Yield the signs beside digits that pass for other signs, such as a fullwidth dollar sign.

    Args:
        languages: codes of the languages in which such texts are ordinarily written, e.g. `ja`.
    """
    found = frozenset(filter(_passes_for_sign, set(text)))
    scripts = name_scripts(languages)
    letters = frozenset(char for char in found if char.isalpha())
    signs = frozenset[str]() if may_be_east_asian(text, languages) else found - letters
    letters = frozenset(char for char in letters if name_script(char) not in scripts)
    if not signs and not letters:
        return
    any_sign, sign = (f"[{re.escape(''.join(sorted(each)))}]" for each in (signs | letters, signs))
    beside = rf"(?<![^\W\d]){any_sign}(?=\d)|(?<=\d){any_sign}(?![^\W\d])"
    if signs:
        beside += rf"|{sign}(?=\s\d)|(?<=\d\s){sign}"
    for match in re.finditer(beside, text):
        yield match.start(), match.end(), frozenset(match[0])


def find_odd_amount(text: str, languages: Collection[str]) -> frozenset[str]:
    """Find the characters of an amount that are read as other digits or signs: Roman numerals,
    letters such as O, and dashes that pass for a minus. Empty if the text is not an amount."""
    if len(text) > LONGEST_AMOUNT:
        return frozenset()
    found, text = _read_amount(text), _NO_CENTS.sub("", text)
    numerals = frozenset(char for char in text if get_kind(char) == ROMAN)
    if numerals or not found:
        return numerals
    usual = MINUS if WRITTEN_WITH_MINUS & set(languages) else ""
    odd = {
        char for char in text if not char.isascii() and _read_plainly(char) in {*_SIGNS, *_LETTERS}
    }
    odd -= set(usual)
    figures = found["figures"]
    if len(figures) > 1:
        odd.update(char for char in text if char in _LETTERS and char in figures)
    return frozenset(odd)


def has_odd_groups(text: str) -> bool:
    """Return True for an amount whose digits are not grouped as in any country, such as `5 00`."""
    found = _read_amount(text)
    if not found:
        return False
    figures = "".join(" " if char.isspace() else char for char in found["figures"])
    is_regular = _REGULAR_FIGURES.fullmatch(figures) and not _FALSE_THOUSANDS.fullmatch(figures)
    return not is_regular and not set(_LETTERS) & set(figures)


def _read_amount(text: str) -> re.Match[str] | None:
    if len(text) > LONGEST_AMOUNT:
        return None
    return _AMOUNT.fullmatch("".join(map(_read_plainly, _NO_CENTS.sub("", text.strip()))))


@lru_cache(maxsize=4096)
def _passes_for_sign(char: str) -> bool:
    """Return True for a sign or letter that looks like another sign of a currency, of percent or
    of arithmetic."""
    if char.isascii():
        return False
    if char in CURRENCY_TWINS:
        return True
    plain = unicodedata.normalize("NFKC", char)
    if unicodedata.decomposition(char).startswith(_STYLED_FORMS):
        return plain == "%" or unicodedata.category(plain) in {"Sc", "Sm", "Pd"}
    name = unicodedata.name(char, "")
    return name.startswith(_HEAVY) and _is_currency(name.removeprefix(_HEAVY))


def _is_currency(name: str) -> bool:
    try:
        return unicodedata.category(unicodedata.lookup(name)) == "Sc"
    except KeyError:
        return False


@lru_cache(maxsize=4096)
def _read_plainly(char: str) -> str:
    """Return the digit, letter or sign for which a reader takes a character of an amount."""
    if char.isascii():
        return char
    plain = unicodedata.normalize("NFKC", char)
    if plain == MINUS or unicodedata.category(char) == "Pd":
        return "-"
    look = LOOKS.get(plain, plain)
    return look if look in {*_SIGNS, *_LETTERS, "'"} else char
