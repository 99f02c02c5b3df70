"""Texts that others chose, such as the name of another system's tool: the type of such texts, and
their quoted form for plain text."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection

from tools.contract.hidden_characters import replace_hidden
from tools.contract.odd_letters import find_odd_parts

MAX_QUOTED = 40
_KEPT_END = 13
_QUOTES = frozenset({"Pi", "Pf"})
"""The Unicode categories of opening and closing quotation marks."""
_SURROGATE = "Cs"
"""The category of half a character, which cannot be written as UTF-8."""


class OutsideText(str):
    """A text that somebody outside chose. Pages show it as a chip, and plain texts quote it, so
    that it never reads as Gadget's own words. It is also quoted in an f-string."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        return format(quote_text(self), spec)


def cut_middle(text: str, longest: int = MAX_QUOTED) -> str:
    """Cut the middle of a text that is too long, and keep its start and end."""
    if len(text) <= longest:
        return text
    return f"{text[: longest - _KEPT_END - 1]}…{text[-_KEPT_END:]}"


def quote_text(text: str, languages: Collection[str] = (), longest: int = MAX_QUOTED) -> str:
    """Quote a text on one line of plain text: hidden characters become tokens, quotation marks
    inside it are replaced, and a warning follows if it has odd letters.

    Args:
        languages: codes of the languages in which such texts are ordinarily written.
        longest: the maximum number of characters kept.
    """
    shown = cut_middle(" ".join(text.split()), longest)
    odd = dict.fromkeys(part.kind for part in find_odd_parts(shown, languages))
    line = replace_hidden(shown, languages, keep="")
    inner = "".join(_replace_quote(char) for char in line)
    return f"“{inner}”{''.join(f' ⚠ {kind}' for kind in odd)}"


def quote_excerpt(text: str, longest: int = MAX_QUOTED) -> str:
    """Quote the start and the end of a text on one line, with its letters and spaces unchanged, for
    a page or a program that flags odd letters and spaces itself."""
    line = text.replace("\n", " ")
    if len(line) > longest:
        line = f"{line[: longest * 2 // 3]}…{line[-(longest // 3) :]}"
    return f"“{''.join(map(_replace_quote, line))}”"


def name_place(field: str) -> str:
    """Introduce a finding with the name of its param or field: `in “notes”: `; empty without a
    name."""
    return f"in {quote_excerpt(field)}: " if field else ""


def _replace_quote(char: str) -> str:
    kind = unicodedata.category(char)
    if kind == _SURROGATE:
        return "\N{REPLACEMENT CHARACTER}"
    return "'" if char == '"' or kind in _QUOTES else char
