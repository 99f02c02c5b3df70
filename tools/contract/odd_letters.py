"""Letters and digits that pass for others: mixed alphabets, digits of other scripts, letters in
disguise, and letters that turn the order of their surroundings."""

# ruff: noqa: RUF001 - the tables consist of such letters
from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from tools.contract.look_alikes import LOOKS, SMALL_CAPITALS, STROKES

KINDS = MIXED, DISGUISED, ENCLOSED, STRUCK, DIGITS, TURNED = (
    "mixed alphabets",
    "letters in disguise",
    "letters in circles or boxes",
    "letters struck out",
    "digits of another kind",
    "letters that turn the order",
)
MOST_PARTS = 500
"""The maximum number of parts of one kind that are found in one text; more would not help a reader.
"""
LATIN, GREEK, STYLED = "LATIN", "GREEK", "STYLED"
NEUTRAL = frozenset(
    {
        *("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC"),
        *("HALFWIDTH", "MICRO", "FEMININE", "MASCULINE", "MODIFIER", "SUPERSCRIPT", "SUBSCRIPT"),
        *("COMBINING", "UNKNOWN"),
    }
)
"""Alphabets that mix with Latin letters in ordinary words, and characters of no alphabet."""
WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|[\u0300-\u036f])*")
SHORTEST_MIX_WITH_GREEK = 3
"""The fewest letters of a word in which Greek letters among Latin ones are odd. Shorter words count
as formulas: Δx, αβ."""
WEAK = frozenset(SMALL_CAPITALS) | frozenset("гνιυ")
"""Letters that only resemble a Latin letter; a word that contains one does not pass for Latin."""
LIGATURES = frozenset(map(chr, range(0xFB00, 0xFB07)))
DOTLESS = frozenset("ıȷ")
_TURKISH = re.compile("[ğĞşŞİ]")
FIRST_RARE_LATIN = "\u0180"
"""The first rare Latin letter. Letters before it, such as ø, ł and æ, belong to the spelling of
many languages."""
_ENCLOSED = "Ⓐ-ⓩ⒜-⒵\U0001f110-\U0001f169\U0001f170-\U0001f189"
_ENCLOSED_LETTER = re.compile(f"[{_ENCLOSED}]")
_ENCLOSED_WORD = re.compile(f"[A-Za-z{_ENCLOSED}]+")
_STRUCK_WORD = re.compile(f"(?:\\w(?:{STROKES.pattern})+)+")
_DIGITS = re.compile(r"\d+")
_ENCLOSED_DIGIT = "①-⑨⑴-⑼⒈-⒐⓪⓵-⓽⓿❶-❾➀-➈➊-➒🄀-🄊🄋🄌"
_ENCLOSED_NUMBER = re.compile(rf"[{_ENCLOSED_DIGIT}\d]{{2,}}")
_TOKEN = re.compile(r"\S+")
_TURNED_NUMBERS = re.compile(
    r"(?<![0-9.,])[0-9][0-9.,]*+[^\S\n]++([\u0590-\u08ff]{1,2})[^\S\n]++[0-9][0-9.,]*+"
)
FEWEST_OF_A_SENTENCE = 5
"""The fewest right-to-left letters of a text that counts as a sentence in such a language."""
_FIRST_STRONG = re.compile(r"[^\W\d_]")
DIGIT_SCRIPTS = {"ARABIC-INDIC": "ARABIC", "EXTENDED": "ARABIC", "FULLWIDTH": "CJK"}
"""{first word of a digit's Unicode name: script}, where that word is not the name of the script."""
_EAST_ASIAN = frozenset({"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "FULLWIDTH"})


@dataclass(frozen=True)
class OddPart:
    """A part of a text that passes for other text.

    Attributes:
        start: where it begins.
        end: where it ends.
        letters: its odd characters.
        kind: MIXED, DISGUISED, ENCLOSED, STRUCK, DIGITS or TURNED, as words for people.
    """

    start: int
    end: int
    letters: frozenset[str]
    kind: str


def find_odd_parts(text: str, languages: Collection[str] = ()) -> list[OddPart]:
    """Find the parts of a text that pass for other text, from left to right, without overlaps.

    Args:
        languages: codes of the languages in which the text may be written, such as `tr`.
    """
    if text.isascii():
        return []
    searches = (
        _find_odd_words(text),
        _find_disguised_letters(text, languages),
        _find_odd_digits(text, languages),
        _find_turned_parts(text),
    )
    found = (part for search in searches for part in islice(search, MOST_PARTS))
    parts: list[OddPart] = []
    for part in sorted(found, key=lambda each: (each.start, -each.end)):
        if not parts or part.start >= parts[-1].end:
            parts.append(part)
    return parts


@lru_cache(maxsize=4096)
def name_alphabet(char: str) -> str:
    """Name the alphabet, e.g. `CYRILLIC`; `STYLED` for styled ASCII letters, empty for characters
    of no alphabet."""
    first = unicodedata.name(char, "UNKNOWN").partition(" ")[0]
    if first in NEUTRAL or not char.isalpha():
        return ""
    plain = unicodedata.normalize("NFKC", char)
    return STYLED if first != LATIN and len(plain) == 1 and plain.isascii() else first


def _find_odd_words(text: str) -> Iterator[OddPart]:
    """Find words that mix alphabets, and words that imitate Latin ones among Latin words."""
    if len({name_alphabet(char) for char in set(text)} - {""}) < 2:
        return
    words = [(found.start(), found.end(), found.group()) for found in WORD.finditer(text)]
    is_among_latin = any(LATIN in _list_alphabets(word) for _, _, word in words)
    plain_scripts = {
        name
        for _, _, word in words
        if not _passes_for_latin(word)
        for name in _list_alphabets(word)
    }
    for start, end, word in words:
        if word.isascii():
            continue
        alphabets = _list_alphabets(word)
        if len(alphabets) > 1:
            letters = _find_odd_letters(word, alphabets)
        else:
            is_disguised = (
                is_among_latin and _passes_for_latin(word) and not alphabets & plain_scripts
            )
            letters = frozenset(word) if is_disguised else frozenset()
        if letters:
            yield OddPart(start, end, letters, MIXED)


def _list_alphabets(word: str) -> frozenset[str]:
    return frozenset(name for name in map(name_alphabet, word) if name)


@lru_cache(maxsize=4096)
def _passes_for_latin(word: str) -> bool:
    """Return True if the word has one alphabet, not the Latin one, and every letter has a Latin
    twin. A single Greek letter does not count, because it belongs to a formula."""
    alphabets = _list_alphabets(word)
    if len(alphabets) != 1 or alphabets & {LATIN, STYLED} or (GREEK in alphabets and len(word) < 2):
        return False
    return all(
        LOOKS.get(char, "").isalpha() and char not in WEAK for char in word if char.isalpha()
    )


def _find_odd_letters(word: str, alphabets: frozenset[str]) -> frozenset[str]:
    """Return the letters outside the word's main alphabet. Greek letters in a Latin word count only
    if they look like other letters, and not in short words, which are formulas."""
    counts = {name: sum(name_alphabet(char) == name for char in word) for name in alphabets}
    main = max(alphabets, key=lambda name: (counts[name], name == LATIN))
    odd = frozenset(char for char in word if name_alphabet(char) not in ("", main))
    if alphabets == {LATIN, GREEK} and main == LATIN:
        return (
            frozenset(odd & LOOKS.keys()) if len(word) >= SHORTEST_MIX_WITH_GREEK else frozenset()
        )
    return odd


def _find_disguised_letters(text: str, languages: Collection[str]) -> Iterator[OddPart]:
    """Find words with Latin letters that pass for other letters, and words with letters in circles
    or struck out."""
    is_turkish = bool({"tr", "az"} & set(languages)) or _TURKISH.search(text) is not None
    for found in WORD.finditer(text):
        letters = frozenset(filter(_is_rare_latin_twin, found[0]))
        if not is_turkish:
            letters |= DOTLESS & set(found[0])
        if letters:
            yield OddPart(found.start(), found.end(), letters, DISGUISED)
    if _ENCLOSED_LETTER.search(text):
        for found in _ENCLOSED_WORD.finditer(text):
            if len(found[0]) > 1 and (odd := frozenset(found[0]) - _ASCII):
                yield OddPart(found.start(), found.end(), odd, ENCLOSED)
    for found in _STRUCK_WORD.finditer(text):
        letters = frozenset(filter(str.isalnum, found[0]))
        yield OddPart(found.start(), found.end(), letters, STRUCK)


_ASCII = frozenset(map(chr, range(128)))


@lru_cache(maxsize=4096)
def _is_rare_latin_twin(char: str) -> bool:
    if char in LIGATURES:
        return True
    is_rare = char >= FIRST_RARE_LATIN and name_alphabet(char) == LATIN
    return is_rare and len(LOOKS.get(char, "")) == 1


def _find_odd_digits(text: str, languages: Collection[str]) -> Iterator[OddPart]:
    """Find numbers with digits of several scripts, with digits of a script in which the text is not
    written, or with enclosed digits."""
    main = _find_main_script(text)
    for found in _DIGITS.finditer(text):
        if found[0].isascii():
            continue
        scripts = {_get_digit_script(char) for char in found[0]}
        script = next(iter(scripts))
        is_ordinary = script == main or script in {SCRIPTS.get(each) for each in languages}
        if len(scripts) > 1 or not is_ordinary:
            odd = frozenset(found[0]) - _ASCII
            yield OddPart(found.start(), found.end(), odd, DIGITS)
    for found in _ENCLOSED_NUMBER.finditer(text):
        if odd := frozenset(filter(_is_enclosed_digit, found[0])):
            yield OddPart(found.start(), found.end(), odd, DIGITS)


SCRIPTS = {
    "ar": "ARABIC", "fa": "ARABIC", "ur": "ARABIC", "ps": "ARABIC", "hi": "DEVANAGARI", "mr": "DEVANAGARI",
    "ne": "DEVANAGARI", "bn": "BENGALI", "as": "BENGALI", "pa": "GURMUKHI", "gu": "GUJARATI", "ta": "TAMIL",
    "te": "TELUGU", "kn": "KANNADA", "ml": "MALAYALAM", "th": "THAI", "lo": "LAO", "my": "MYANMAR", "km": "KHMER",
    "bo": "TIBETAN", "zh": "CJK", "ja": "CJK", "ko": "CJK",
}  # fmt: skip
"""The script of a language's digits, by its code."""


def _find_main_script(text: str) -> str:
    """Find the script of most of the text's letters; CJK stands for Chinese, Japanese and
    Korean."""
    counts: dict[str, int] = {}
    for char in text:
        if char.isalpha():
            script = unicodedata.name(char, "UNKNOWN").partition(" ")[0]
            script = "CJK" if script in _EAST_ASIAN else script
            counts[script] = counts.get(script, 0) + 1
    return max(counts, key=lambda name: counts[name], default="")


@lru_cache(maxsize=1024)
def _get_digit_script(char: str) -> str:
    if char.isascii():
        return "ASCII"
    first = unicodedata.name(char).partition(" ")[0]
    return DIGIT_SCRIPTS.get(first, first)


def _is_enclosed_digit(char: str) -> bool:
    return not char.isdecimal()


def _find_turned_parts(text: str) -> Iterator[OddPart]:
    """Find numbers and addresses in which letters written from right to left turn the order."""
    if not any(map(_is_right_to_left, set(text))):
        return
    for found in _TOKEN.finditer(text):
        token = found[0]
        first = next((at for at, char in enumerate(token) if _is_right_to_left(char)), 0)
        if all(any(map(_is_latin_or_digit, part)) for part in (token[:first], token[first:])):
            odd = frozenset(filter(_is_right_to_left, token))
            yield OddPart(found.start(), found.end(), odd, TURNED)
    strong = _FIRST_STRONG.search(text)
    is_written_leftwards = (
        strong is not None
        and _is_right_to_left(strong[0])
        and sum(map(_is_right_to_left, text)) >= FEWEST_OF_A_SENTENCE
    )
    for found in () if is_written_leftwards else _TURNED_NUMBERS.finditer(text):
        if all(map(_is_right_to_left, found[1])):
            odd = frozenset(found[1])
            yield OddPart(found.start(), found.end(), odd, TURNED)


@lru_cache(maxsize=4096)
def _is_right_to_left(char: str) -> bool:
    return unicodedata.bidirectional(char) in {"R", "AL"} and char.isalpha()


def _is_latin_or_digit(char: str) -> bool:
    return char.isascii() and char.isalnum()
