"""Characters that readers cannot see, and characters that push other text out of sight."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from functools import lru_cache

from tools.contract.languages import CJK, LEFTWARD_SCRIPTS, name_scripts

# Invisible characters that Unicode classifies as letters, marks or symbols, such as fillers.
BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
SELECTORS = "\ufe0e\ufe0f"
# Characters with Unicode's property `Emoji`, except ASCII.
EMOJI = (
    "©®‼⁉™\u2139↔-↙↩↪⌚⌛⌨⏏⏩-⏳⏸-⏺Ⓜ▪▫▶◀◻-◾☀-☄☎☑☔☕☘☝☠☢☣☦☪☮☯☸-☺♀♂♈-♓♟♠♣♥♦♨♻♾♿⚒-⚗⚙⚛⚜⚠⚡⚧⚪⚫⚰⚱⚽⚾⛄⛅⛈⛎⛏⛑⛓⛔⛩⛪⛰-⛵⛷-⛺⛽✂✅✈-✍✏"
    "✒✔✖✝✡✨✳✴❄❇❌❎❓-❕❗❣❤\u2795-➗➡➰➿⤴⤵⬅-⬇⬛⬜⭐⭕〰〽㊗㊙🀄🃏🅰🅱🅾🅿🆎🆑-🆚🇦-🇿🈁🈂🈚🈯🈲-🈺🉐🉑🌀-🌡🌤-🎓🎖🎗🎙-🎛🎞-🏰🏳-🏵🏷-📽📿-🔽🕉-🕎🕐-🕧🕯🕰🕳-🕺🖇🖊-🖍🖐🖕🖖"
    "🖤🖥🖨🖱🖲🖼🗂-🗄🗑-🗓🗜-🗞🗡🗣🗨🗯🗳🗺-🙏🚀-🛅🛋-🛒🛕-\U0001f6d8\U0001f6dc-🛥🛩🛫🛬🛰🛳-🛼🟠-🟫🟰🤌-🤺🤼-🥅🥇-🧿🩰-\U0001faff"
)
# A variation selector is legitimate after an emoji and in a keycap, and hidden anywhere else.
HIDDEN_SELECTOR = re.compile(f"[{SELECTORS}](?<![{EMOJI}].)(?<![0-9#*]\ufe0f(?=\u20e3))")
_LEFTWARD = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"
_LEFTWARD_LETTER = re.compile(_LEFTWARD)
_DIRECTION = "[\u061c\u200e\u200f]"
_DIRECTIONS = f"(?<!{_DIRECTION}){_DIRECTION}++"
_RIGHTWARD = "[0-9A-Za-z\u00c0-\u024f]"
_DIRECTIONS_BESIDE_WORDS = (
    rf"(?<=(?!{_DIRECTION}){_LEFTWARD}){_DIRECTIONS}(?!\w)|(?<!\w){_DIRECTIONS}(?={_LEFTWARD})"
    rf"|(?<!\w)(?<!{_RIGHTWARD}\S)(?<!{_RIGHTWARD}\S\S)(?<!{_RIGHTWARD}\S\S\S){_DIRECTIONS}"
    rf"|{_DIRECTIONS}(?!\w)(?!\S{{0,40}}{_RIGHTWARD})"
)
"""Characters that only set the direction, as people type them in languages that are written to the
left: beside a word in such letters, or at the start or end of a Latin word or number with its
punctuation, but not within one, as in `fdp\u200f.exe`."""
_SELECTED_FORM = "(?<=[\u3400-\u9fff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"
"""The selector of a variant of a Chinese character, as in Japanese names."""
_SOMETIMES_ORDINARY = frozenset(
    ["\u061c", *map(chr, range(0x200B, 0x2010)), "\U000e0067", *map(chr, range(0xE0100, 0xE01F0))]
)
_NOTHING = re.compile("(?!)")
_ORDINARY_EVERYWHERE = (
    f"(?<=[{EMOJI}{SELECTORS}🏻-🏿])\u200d(?=[{EMOJI}])"  # emoji joined into one, such as a family
    "|(?<=🏴)\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074"
    "|\U000e0077\U000e006c\U000e0073)\U000e007f"  # the flags of England, Scotland and Wales
)
_JOINED_LETTERS = {
    "ARABIC": "\u0610-\u061a\u0620-\u065f\u066e-\u06d3\u06d5-\u06dc\u06fa-\u06ff\u0750-\u077f\u08a0-\u08e1",
    "DEVANAGARI": "\u0900-\u0963\u0971-\u097f", "BENGALI": "\u0980-\u09e3\u09f0\u09f1", "GURMUKHI": "\u0a00-\u0a5f",
    "GUJARATI": "\u0a80-\u0ae3", "ORIYA": "\u0b00-\u0b63", "TAMIL": "\u0b80-\u0bd7", "TELUGU": "\u0c00-\u0c63",
    "KANNADA": "\u0c80-\u0ce3", "MALAYALAM": "\u0d00-\u0d63", "SINHALA": "\u0d80-\u0ddf",
}  # fmt: skip
"""For each script, the letters and vowel signs between which a joiner or non-joiner is part of the
spelling."""
_VIRAMAS = "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca"
"""The signs after which a joiner may end a word."""
_WRITTEN_WITHOUT_SPACES = {
    "THAI": "\u0e01-\u0e4e", "LAO": "\u0e81-\u0ecd", "MYANMAR": "\u1000-\u109f", "KHMER": "\u1780-\u17d3"
}  # fmt: skip
"""For each script, the letters between which a zero width space separates words."""
HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
ODD_SPACES = frozenset(
    "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f"
)
"""Spaces that look like an ordinary space, or like no space at all."""
BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){3,}")
MANY_SPACES = re.compile(r"[ \t]{20,}")
SPACES_BEYOND_INDENTATION = re.compile(
    r"(?<![\n \t])[ \t]{20,}|(?<=\n)(?! {0,80}(?![ \t]))[ \t]{20,}"
)
"""Many spaces in a row, except at most 80 after a line break, which indent the line."""
SPACES_BEFORE_ENDING = re.compile(r"(?<=\S)[^\S\n]{2,}(?=\.\w{1,10}\Z)")
SPACES_BEFORE_DOT = re.compile(r"(?<=\S)[^\S\n]{2,}(?=\.)")
_NATURAL_NO_BREAK = r"(?<=[\d«])[\u00a0\u202f\u2007\u2009]|[\u00a0\u202f\u2009](?=[\d;:!?»%€$£°])"
NATURAL_NO_BREAK = re.compile(_NATURAL_NO_BREAK)
"""No-break spaces beside numbers and signs."""
_NATURAL_IN_PROSE = re.compile(
    rf"{_NATURAL_NO_BREAK}|[\u00a0\u202f\u2009](?=[+=±\u00d7÷≈<>≤≥])"
    r"|(?<=[^\W_]|[\u0300-\u036f.,)»”’%&№\u2013\u2014])\u00a0(?=[^\W_]|[&(„“«\u2013\u2014])"
    r"|(?<=\.)[\u202f\u2009](?=[^\W\d_])"
)
"""In addition, a no-break space before a sign of arithmetic, one between two words, as in
`M. Dupont`, and a narrow one in abbreviations, as in `z. B.`."""
_UNSPACED = re.compile(r"[^ \t\r\n]+")
_IN_ADDRESS = re.compile(r"[\\@]|\A/|\A[^/]*/[^/]*/.*[\u00a0\u202f\u2009]")
EDGE_SPACES = re.compile(r"\A[ \t]+(?=\S)|(?<=\S)[ \t]+\Z")
MARKS_ON_ONE_LETTER = re.compile(
    r"([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{3})"
    r"([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+)"
)
"""Group 1 matches the marks that a letter may have; group 2 matches the marks in excess."""


@lru_cache(maxsize=4096)
def is_hidden(char: str, keep: str = "\n\t") -> bool:
    """Return True if the character is hidden in every context, unlike emoji selectors.

    Args:
        keep: control characters that the page displays, such as line breaks in a text box.
    """
    if char.isascii():
        return (char < " " or char == "\x7f") and char not in keep
    if char in SELECTORS:
        return False
    is_selector = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    return is_selector or char in BLANKS or unicodedata.category(char) in HIDDEN_CATEGORIES


def find_hidden_characters(
    text: str, keep: str = "\n\t", languages: Collection[str] = ()
) -> frozenset[str]:
    """Return the hidden characters that are not ordinary in their place; odd spaces do not count.

    Args:
        languages: codes of the languages in which such texts are ordinarily written, e.g. `fa`.
    """
    if text.isascii() and text.isprintable():
        return frozenset()
    rest = remove_ordinary(text, languages)
    found = {char for char in set(rest) if is_hidden(char, keep)}
    return frozenset(found | set(HIDDEN_SELECTOR.findall(text)))


def remove_ordinary(text: str, languages: Collection[str]) -> str:
    """Remove the hidden characters that are ordinary in their place."""
    return choose_ordinary_pattern(text, languages).sub("", text)


def choose_ordinary_pattern(text: str, languages: Collection[str]) -> re.Pattern[str]:
    """Return a pattern for the text's hidden characters that are ordinary in their place; it
    matches nothing if the text has none."""
    if _SOMETIMES_ORDINARY.isdisjoint(text):
        return _NOTHING
    scripts = name_scripts(languages)
    if not _LEFTWARD_LETTER.search(text):
        scripts -= LEFTWARD_SCRIPTS
    return _build_ordinary_pattern(scripts)


@lru_cache(maxsize=256)
def _build_ordinary_pattern(scripts: frozenset[str]) -> re.Pattern[str]:
    """Build a pattern for hidden characters that are ordinary in their place: in joined emoji and
    flags, and between letters of these scripts."""
    patterns = [_ORDINARY_EVERYWHERE]
    for script in sorted(scripts):
        if letters := _JOINED_LETTERS.get(script):
            patterns.append(f"(?<=[{letters}])[\u200c\u200d](?=[{letters}])")
            patterns.append(f"(?<=[{letters}])(?<=[{_VIRAMAS}])\u200d(?!\\w)")
        if letters := _WRITTEN_WITHOUT_SPACES.get(script):
            patterns.append(f"(?<=[{letters}])\u200b(?=[{letters}])")
        if script in LEFTWARD_SCRIPTS:
            patterns.append(_DIRECTIONS_BESIDE_WORDS)
        if script == CJK:
            patterns.append(_SELECTED_FORM)
    return re.compile("|".join(patterns))


def replace_hidden(text: str, languages: Collection[str] = (), keep: str = "\n\t") -> str:
    """Replace each hidden character that is not ordinary in its place with a token like
    ⟦U+202E⟧."""
    if text.isascii() and text.isprintable():
        return text
    pieces, at = [], 0
    for found in choose_ordinary_pattern(text, languages).finditer(text):
        pieces += [_replace_all_hidden(text[at : found.start()], keep), found[0]]
        at = found.end()
    return "".join([*pieces, _replace_all_hidden(text[at:], keep)])


def _replace_all_hidden(text: str, keep: str) -> str:
    shown = HIDDEN_SELECTOR.sub(lambda found: build_token(found.group()), text)
    tokens = {ord(char): build_token(char) for char in set(text) if is_hidden(char, keep)}
    return shown.translate(tokens) if tokens else shown


def build_token(char: str) -> str:
    """Build the token that shows a character: ⟦U+202E⟧."""
    return f"⟦U+{ord(char):04X}⟧"


def name_character(char: str) -> str:
    """Name a character in words that people understand, such as `zero width space`."""
    return unicodedata.name(char, "control character").lower()


def remove_natural_spaces(text: str) -> str:
    """Remove the no-break spaces that are ordinary in prose, which addresses and paths have only
    beside numbers."""
    return _UNSPACED.sub(_remove_natural_spaces, text)


def _remove_natural_spaces(found: re.Match[str]) -> str:
    pattern = NATURAL_NO_BREAK if _IN_ADDRESS.search(found[0]) else _NATURAL_IN_PROSE
    return pattern.sub("", found[0])


def count_lines(blank: str) -> int:
    """Count the blank lines in a match of `BLANK_LINES`."""
    return blank.count("\n") - 1
