"""Look-alike letters: words that mix alphabets, and names that look the same.

The table is a compact form of Unicode's confusables (UTS 39), for letters that look like ASCII in
common fonts.
"""

# ruff: noqa: RUF001 - the table consists of these letters
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

_TWINS = (
    "аaвbсcԁdеeһhіiїiјjкkӏlмmнhоoрpԛqгrѕsтtѵvԝwхxуyАAВBСCЕEНHІIЈJКKӀlМMОOРPԚQЅSТTѴVԜWХXУYҮY"  # Cyrillic
    "αaβbϲcεeηnιiϳjκkνvοoρpτtυuχxγyΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧX"  # Greek
    "оoսuոnցgհhօoքfзz"  # Armenian, and a Cyrillic digit
    "ᎪAᏴBᏟCᎠDᎬEᏀGᎻHᎫJᏦKᏞLᎷMᏢPᏒRᏚSᎢTᏙVᎳWᏃZ"  # Cherokee
    "ɑaɡgɩiıiʟlɪiʀrᴀaʙbᴄcᴅdᴇeᴊjᴋkᴍmɴnᴏoᴘpᴛtᴜuᴠvᴡwʏyᴢz"  # Latin
)
LOOK_ALIKES = dict(zip(_TWINS[::2], _TWINS[1::2], strict=True))
"""Maps a letter to the ASCII letter that it looks like."""

WEAK = frozenset("вгкмнтνιυ")
"""Lower-case letters that look like small capitals; a word with one does not pass for Latin."""
WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|[\u0300-\u036f])*")
LATIN, GREEK, STYLED = "LATIN", "GREEK", "STYLED"
NEUTRAL = frozenset(
    {
        *(
            "CJK",
            "HIRAGANA",
            "KATAKANA",
            "KATAKANA-HIRAGANA",
            "HANGUL",
            "BOPOMOFO",
            "IDEOGRAPHIC",
            "HALFWIDTH",
            "MICRO",
        ),
        *("FEMININE", "MASCULINE", "MODIFIER", "SUPERSCRIPT", "SUBSCRIPT", "COMBINING", "UNKNOWN"),
    }
)
"""Alphabets that mix with Latin letters in ordinary words, and characters of no alphabet."""
SHORTEST_MIX_WITH_GREEK = 3
"""Shorter words count as formulas: Δx, αβ."""
SHORTEST_JOINED = 6
LONGEST_LOOK = 100
ALIKE_IN_NAMES = str.maketrans({"I": "l", "1": "l", "|": "l", "0": "o", "O": "o"})


@dataclass(frozen=True)
class OddWord:
    """A word that looks like another one: its position, its odd letters, and their alphabet."""

    start: int
    end: int
    letters: frozenset[str]
    alphabet: str


@lru_cache(maxsize=4096)
def name_alphabet(char: str) -> str:
    """Name the alphabet, e.g. `CYRILLIC`; `STYLED` for styled ASCII letters, empty for none."""
    first = unicodedata.name(char, "UNKNOWN").partition(" ")[0]
    if first in NEUTRAL or not char.isalpha():
        return ""
    plain = unicodedata.normalize("NFKC", char)
    return STYLED if first != LATIN and len(plain) == 1 and plain.isascii() else first


def find_odd_words(text: str) -> list[OddWord]:
    """Find words that mix alphabets, and words that imitate Latin ones among Latin words."""
    if text.isascii() or len({name_alphabet(char) for char in set(text)} - {""}) < 2:
        return []
    words = [(found.start(), found.end(), found.group()) for found in WORD.finditer(text)]
    is_among_latin = any(LATIN in _list_alphabets(word) for _, _, word in words)
    plain_scripts = {
        name
        for _, _, word in words
        if not _passes_for_latin(word)
        for name in _list_alphabets(word)
    }
    found = []
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
            found.append(OddWord(start, end, letters, name_alphabet(min(letters)).capitalize()))
    return found


@lru_cache(maxsize=4096)
def reduce_to_look(text: str) -> str:
    """Reduce a name to its look; names that readers can confuse have equal looks."""
    plain = unicodedata.normalize("NFKD", text)
    visible = "".join(
        LOOK_ALIKES.get(char, char) for char in plain if unicodedata.category(char) != "Cf"
    )
    return " ".join(
        visible.translate(ALIKE_IN_NAMES).casefold().replace("rn", "m").replace("vv", "w").split()
    )


@lru_cache(maxsize=4096)
def reduce_to_joined_look(text: str) -> str:
    """Reduce to a look without separators: `Acme Corp.`, `AcmeCorp` and `Acme-Corp` are equal.

    Separators stay between two digits, and in a name that would otherwise become too short.
    """
    plain = unicodedata.normalize("NFKD", text)
    words = "".join(
        " " if unicodedata.category(char)[0] in "PZ" else char for char in plain
    ).split()
    gaps = [
        " " if one[-1].isdigit() and other[0].isdigit() else "" for one, other in pairwise(words)
    ]
    joined = "".join(
        reduce_to_look(word) + gap for word, gap in zip(words, [*gaps, ""], strict=False)
    )
    return joined if len(joined) >= SHORTEST_JOINED else reduce_to_look(text)


@lru_cache(maxsize=4096)
def compute_look(name: str) -> str:
    """Compute the stored look of a name; names that readers can confuse have equal looks."""
    return reduce_to_joined_look(name)[:LONGEST_LOOK]


def _list_alphabets(word: str) -> frozenset[str]:
    return frozenset(name for name in map(name_alphabet, word) if name)


@lru_cache(maxsize=4096)
def _passes_for_latin(word: str) -> bool:
    """Return True if every letter has a Latin twin; a single Greek letter belongs to a formula."""
    alphabets = _list_alphabets(word)
    if len(alphabets) != 1 or alphabets & {LATIN, STYLED} or (GREEK in alphabets and len(word) < 2):
        return False
    return all(char in LOOK_ALIKES and char not in WEAK for char in word if char.isalpha())


def _find_odd_letters(word: str, alphabets: frozenset[str]) -> frozenset[str]:
    """Return the letters outside the word's main alphabet."""
    counts = {name: sum(name_alphabet(char) == name for char in word) for name in alphabets}
    main = max(alphabets, key=lambda name: (counts[name], name == LATIN))
    odd = frozenset(char for char in word if name_alphabet(char) not in ("", main))
    if alphabets == {LATIN, GREEK} and main == LATIN:
        return (
            frozenset(odd & LOOK_ALIKES.keys())
            if len(word) >= SHORTEST_MIX_WITH_GREEK
            else frozenset()
        )
    return odd
