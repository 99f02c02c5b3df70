"""Numbers with unusual characters: digits of mixed scripts, digits that are circled or raised,
letters that look like digits, and look-alike separators."""

# ruff: noqa: RUF001 - the tables consist of such characters
from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import pairwise

from tools.contract.languages import ARABIC, CJK, find_main_script, name_scripts
from tools.contract.look_alikes import LOOKS

ASCII, RAISED, ENCLOSED, LETTER, ROMAN, IDEOGRAPH = (
    "ASCII", "RAISED", "ENCLOSED", "LETTER", "ROMAN", "IDEOGRAPH"
)  # fmt: skip
_STYLES = frozenset({RAISED, ENCLOSED, LETTER, ROMAN, IDEOGRAPH})
DIGIT_SCRIPTS = {
    **dict.fromkeys(("ARABIC-INDIC", "EXTENDED"), ARABIC),
    **dict.fromkeys(("FULLWIDTH", "IDEOGRAPHIC", "HANGZHOU"), CJK),
}
"""Maps the first word of a digit's Unicode name to the digit's script, where the two differ."""
_DIGIT_LOOKS = frozenset("0123456789OolI")
_ZERO_LOOKS = frozenset("Oo")
_FIGURE_LOOKS = frozenset("OoIl")
_RAISED_FORMS = ("<super>", "<sub>", "<fraction>")
_ENCLOSED_NAMES = frozenset({"CIRCLED", "NEGATIVE", "DOUBLE", "DINGBAT"})
_LETTER_FIGURES = re.compile(
    r"(?<![\w.,-])(?!0o[0-7]+\b|\d(?:o[1-9]|O[23])(?![.,]?\w))\d[\d.,]*+"
    r"(?:[Oo][\dOoIl.,]*(?<=\d)|[Il][\dOoIl.,]*(?<=\d\d)|[Oo]{2,})(?![\w-])"
)
"""A number with the letter O, I or l between its digits, such as `1l00`, or with several O at its
end, such as `5OOO`. A single letter at the end is a unit, such as the liter; `0o755` is octal,
`1o1` a meeting, and `6O2` part of a formula."""
_KEYCAPS = re.compile("(?:[0-9]\ufe0f?\u20e3?){2,}")
KEYCAP = "\u20e3"
_SEPARATOR = re.compile(r"(?<=[0-9])[^\w\s!-~](?=[0-9])")
_ORDINARY_SEPARATORS = frozenset("’‘‛′″‐‑‒–—−×÷∕⁄∶…·")
_SEPARATOR_NAMES = frozenset({"COMMA", "STOP", "SEPARATOR"})
_TEN = 10
_SHORTEST_NUMBER = 3
"""The minimum length of a number that may begin with a look-alike letter. In anything shorter, the
letter belongs to a name, as in O2."""


def find_odd_numbers(
    text: str, languages: Collection[str]
) -> Iterator[tuple[int, int, frozenset[str]]]:
    """Yield the start, the end and the odd characters of each number with unusual characters.

    Args:
        languages: codes of the languages in which such texts are ordinarily written, e.g. `ar`.
    """
    for found in _LETTER_FIGURES.finditer(text):
        yield found.start(), found.end(), frozenset(found[0]) & _FIGURE_LOOKS
    if text.isascii():
        return
    usual = {find_main_script(text), *name_scripts(languages)}
    odd_figures = "".join(sorted(char for char in set(text) if get_kind(char) not in {"", ASCII}))
    if odd_figures:
        figures = f"[0-9{re.escape(odd_figures)}]"
        for found in re.finditer(rf"{figures}+(?:[.,']{figures}+)*", text):
            if odd := _find_odd_figures(text, found.start(), found.end(), usual):
                yield found.start(), found.end(), odd
    if KEYCAP in text:
        for found in _KEYCAPS.finditer(text):
            if KEYCAP in found[0]:
                yield found.start(), found.end(), frozenset(KEYCAP)
    for found in _SEPARATOR.finditer(text):
        if _passes_for_separator(found[0]) and not usual & {CJK, ARABIC}:
            yield found.start() - 1, found.end() + 1, frozenset(found[0])


def _find_odd_figures(text: str, start: int, end: int, usual: Collection[str]) -> frozenset[str]:
    """Return the characters of a number that pass for its digits; empty if the number is
    ordinary."""
    number = text[start:end]
    if number.isascii():
        return frozenset()
    figures = [char for char in number if get_kind(char)]
    kinds = [get_kind(char) for char in figures]
    scripts = set(kinds) - _STYLES
    odd: set[str] = set()
    if len(scripts) > 1 or scripts - {ASCII, *usual}:
        odd.update(
            char for char, kind in zip(figures, kinds, strict=True) if kind in scripts - {ASCII}
        )
    if ENCLOSED in kinds and len(figures) > 1:
        odd.update(char for char, kind in zip(figures, kinds, strict=True) if kind == ENCLOSED)
    odd.update(
        char
        for (char, kind), following in pairwise(zip(figures, kinds, strict=True))
        if kind == RAISED and following[1] not in {RAISED, LETTER}
    )
    if ROMAN in kinds or IDEOGRAPH in kinds:
        odd.update(_find_numerals_among_digits(f"{number}{text[end : end + 1]}"))
    if scripts and LETTER in kinds and not _touches_letter(text, start, end):
        odd.update(_find_letters_for_digits(figures, kinds))
    return frozenset(odd)


def _find_letters_for_digits(figures: list[str], kinds: list[str]) -> Iterator[str]:
    places = [place for place, kind in enumerate(kinds) if kind != LETTER]
    for place, (char, kind) in enumerate(zip(figures, kinds, strict=True)):
        if kind != LETTER:
            continue
        is_after_digit, is_before_digit = place > places[0], place < places[-1]
        is_first_of_number = is_before_digit and len(figures) >= _SHORTEST_NUMBER
        is_zero_at_end = is_after_digit and LOOKS[char] in _ZERO_LOOKS
        if (is_after_digit and is_before_digit) or is_first_of_number or is_zero_at_end:
            yield char


def _find_numerals_among_digits(number: str) -> Iterator[str]:
    """Yield Roman numerals beside digits, and ideographs that end a number or stand between its
    digits. `number` includes the character after it."""
    for before, char, after in zip(f" {number}", number, f"{number[1:]} ", strict=False):
        beside = {get_kind(before), get_kind(after)} - {"", ROMAN, RAISED}
        is_digit = get_kind(before) == ASCII and (after.isdecimal() or not after.isalnum())
        if (get_kind(char) == ROMAN and beside) or (get_kind(char) == IDEOGRAPH and is_digit):
            yield char


def _touches_letter(text: str, start: int, end: int) -> bool:
    return text[start - 1 : start].isalpha() or text[end : end + 1].isalpha()


@lru_cache(maxsize=4096)
def get_kind(char: str) -> str:
    """Return the script of a digit, or the style or kind of what passes for a digit; empty for
    every other character."""
    if char.isascii():
        return ASCII if char.isdecimal() else ""
    if char.isdecimal():
        first = unicodedata.name(char).partition(" ")[0]
        return DIGIT_SCRIPTS.get(first, first)
    value = unicodedata.numeric(char, None)
    if char.isalpha():
        return _get_kind_of_letter(char, value)
    return "" if value is None else _get_kind_of_numeral(char)


def _get_kind_of_letter(char: str, value: float | None) -> str:
    name = unicodedata.name(char, "")
    if value is not None and value < _TEN and name.startswith(CJK):
        return IDEOGRAPH
    is_other = unicodedata.bidirectional(char) == "L" and "LATIN" not in name
    return LETTER if is_other and LOOKS.get(char) in _DIGIT_LOOKS else ""


def _get_kind_of_numeral(char: str) -> str:
    name, form = unicodedata.name(char, ""), unicodedata.decomposition(char)
    first = name.partition(" ")[0]
    if form.startswith(_RAISED_FORMS):
        return RAISED
    if "ROMAN NUMERAL" in name:
        return ROMAN
    is_enclosed = unicodedata.category(char) != "Nl" and (form or first in _ENCLOSED_NAMES)
    return ENCLOSED if is_enclosed else DIGIT_SCRIPTS.get(first, first)


@lru_cache(maxsize=1024)
def _passes_for_separator(char: str) -> bool:
    if char in _ORDINARY_SEPARATORS:
        return False
    looks = {LOOKS.get(char), unicodedata.normalize("NFKC", char)}
    return bool(looks & {".", ",", "'"}) or not _SEPARATOR_NAMES.isdisjoint(
        unicodedata.name(char, "").split()
    )
