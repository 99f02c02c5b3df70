"""Characters that readers cannot see, and text that pushes other text out of sight."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

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
# A joiner is legitimate between two emoji, such as those in a family emoji.
JOINER = "\u200d"
HIDDEN_JOINER = re.compile(f"{JOINER}(?<![{EMOJI}{SELECTORS}🏻-🏿].)|{JOINER}(?![{EMOJI}])")
HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
ODD_SPACES = frozenset(
    "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f"
)
"""Spaces that look like an ordinary space, or like no space at all."""
BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){3,}")
MANY_SPACES = re.compile(r"[ \t]{20,}")
EDGE_SPACES = re.compile(r"\A[ \t]+(?=\S)|(?<=\S)[ \t]+\Z")
MARKS_ON_ONE_LETTER = re.compile(
    r"([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{3})"
    r"([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+)"
)
"""Group 1: the marks that a letter may have; group 2: the marks in excess."""


@lru_cache(maxsize=4096)
def is_hidden(char: str, keep: str = "\n\t") -> bool:
    """Return True if the character is hidden in every context, unlike emoji selectors.

    Args:
        keep: control characters that the page shows, such as line breaks in a box.
    """
    if char.isascii():
        return (char < " " or char == "\x7f") and char not in keep
    if char in SELECTORS:
        return False
    is_selector = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    return is_selector or char in BLANKS or unicodedata.category(char) in HIDDEN_CATEGORIES


def find_hidden_characters(text: str, keep: str = "\n\t") -> frozenset[str]:
    """Return the text's hidden characters, except for odd spaces and the joiners in emoji."""
    if text.isascii() and text.isprintable():
        return frozenset()
    found = {char for char in set(text) if is_hidden(char, keep)}
    if any(selector in text for selector in SELECTORS):
        found |= set(HIDDEN_SELECTOR.findall(text))
    if JOINER in text and not HIDDEN_JOINER.search(text):
        found.discard(JOINER)
    return frozenset(found)


def name_character(char: str) -> str:
    """Name a character for people: `zero width space`."""
    return unicodedata.name(char, "control character").lower()


def count_lines(blank: str) -> int:
    """Count the blank lines in a match of `BLANK_LINES`."""
    return blank.count("\n") - 1
