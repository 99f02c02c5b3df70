"""Languages by code, and the scripts in which they are written."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection
from functools import lru_cache

from tools.caches import cache_by_text

LATIN, CJK, ARABIC = "LATIN", "CJK", "ARABIC"
SCRIPTS = {
    "ar": ARABIC, "fa": ARABIC, "ur": ARABIC, "ps": ARABIC, "sd": ARABIC, "ug": ARABIC, "ckb": ARABIC, "ku": ARABIC,
    "he": "HEBREW", "yi": "HEBREW", "dv": "THAANA", "am": "ETHIOPIC", "ti": "ETHIOPIC", "hy": "ARMENIAN",
    "ka": "GEORGIAN", "el": "GREEK", "ru": "CYRILLIC", "uk": "CYRILLIC", "be": "CYRILLIC", "bg": "CYRILLIC",
    "sr": "CYRILLIC", "mk": "CYRILLIC", "kk": "CYRILLIC", "ky": "CYRILLIC", "tg": "CYRILLIC", "mn": "CYRILLIC",
    "hi": "DEVANAGARI", "mr": "DEVANAGARI", "ne": "DEVANAGARI", "sa": "DEVANAGARI", "bn": "BENGALI", "as": "BENGALI",
    "pa": "GURMUKHI", "gu": "GUJARATI", "or": "ORIYA", "ta": "TAMIL", "te": "TELUGU", "kn": "KANNADA",
    "ml": "MALAYALAM", "si": "SINHALA", "th": "THAI", "lo": "LAO", "my": "MYANMAR", "km": "KHMER", "bo": "TIBETAN",
    "zh": CJK, "ja": CJK, "ko": CJK,
}  # fmt: skip
"""The script of each language that is not written in Latin letters, by its code. The first language
of a script represents the script."""
LEFTWARD_SCRIPTS = frozenset({ARABIC, "HEBREW", "THAANA"})
"""Scripts that are written from right to left."""
_EAST_ASIAN = frozenset(
    {
        *("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC"),
        "FULLWIDTH",
    }
)


def get_main_code(code: str) -> str:
    """Return the language of a code, without its country and script: `de` for `de-CH`."""
    return code.replace("_", "-").partition("-")[0].lower()


def name_scripts(languages: Collection[str]) -> frozenset[str]:
    """Return the scripts of the languages, except Latin."""
    return frozenset(SCRIPTS[code] for code in languages if code in SCRIPTS)


def find_language(script: str) -> str:
    """Find the code of the language that represents a script; empty for Latin."""
    return next((code for code, name in SCRIPTS.items() if name == script), "")


@lru_cache(maxsize=4096)
def name_script(letter: str) -> str:
    """Name a letter's script, such as `GREEK`; `CJK` for Chinese, Japanese and Korean."""
    first = unicodedata.name(letter, "UNKNOWN").partition(" ")[0]
    return CJK if first in _EAST_ASIAN else first


def count_scripts(text: str) -> dict[str, int]:
    """Count the letters of each script."""
    counts: dict[str, int] = {}
    for char, count in Counter(text).items():
        if char.isalpha():
            script = name_script(char)
            counts[script] = counts.get(script, 0) + count
    return counts


@cache_by_text
def find_main_script(text: str) -> str:
    """Find the script to which most of the text's letters belong; empty if the text has no
    letters."""
    counts = count_scripts(text)
    return max(counts, key=lambda name: counts[name], default="")


def may_be_east_asian(text: str, languages: Collection[str]) -> bool:
    """Return True if one of the languages is Chinese, Japanese or Korean, or if the text has
    letters of these languages. In such texts, fullwidth Latin letters and signs are ordinary."""
    return CJK in name_scripts(languages) or any(
        char.isalpha() and name_script(char) == CJK and not _is_latin(char) for char in set(text)
    )


def _is_latin(char: str) -> bool:
    return unicodedata.normalize("NFKC", char).isascii()
