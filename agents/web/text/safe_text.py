"""Safe display of text that others wrote: the text is escaped, hidden characters become visible,
and long values are folded.

Characters that are ordinary in the languages of the reader's organization are shown unchanged.
"""

from __future__ import annotations

import functools
import html
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString

from agents.accounts.languages import get_current_languages
from agents.platform.value_text import MAX_LENGTH, format_json_value, is_long
from tools.contract.contacts import PUNYCODE, decode_host, list_contacts
from tools.contract.hidden_characters import (
    BLANK_LINES,
    EDGE_SPACES,
    HIDDEN_SELECTOR,
    MANY_SPACES,
    MARKS_ON_ONE_LETTER,
    ODD_SPACES,
    build_token,
    choose_ordinary_pattern,
    count_lines,
    is_hidden,
    name_character,
    replace_hidden,
)
from tools.contract.mixed_hosts import is_mixed_host
from tools.contract.odd_letters import MIXED, OddPart, find_odd_parts
from tools.contract.outside_text import MAX_QUOTED, cut_middle, quote_text

HEAD_LINES, TAIL_LINES = 5, 2
MAX_FOLDED_CONTACTS = 5
MAX_FIELD_NAME = 60
MAX_QUOTE_LENGTH = 280

# Possessive and anchored at a label's start, so that matching stays linear for any input.
HOST = re.compile(r"(?<![\w-])[\w-]++(?:\.[\w-]++)++")
LINK = re.compile(r"\b(?:[a-z][a-z0-9+.-]{0,30}+://|www\.)\S+", re.IGNORECASE)
SPACE_RUN = " " * 20
TIMES = "\N{MULTIPLICATION SIGN}"
FLAG = "⚠ {}"
HOST_FLAG = '<span class="mixed-host" title="Letters of several alphabets in one address">⚠ mixed alphabets</span>'
CHARACTER_CLUSTER = re.compile(
    r".[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]*", re.DOTALL
)
"""A character with its combining marks, which stay together so that piled-up marks are counted."""
MAX_NAMED = 4
MAX_HIGHLIGHTED = 500
"""The maximum number of odd words marked in one text; more would not help a reader."""
SENTENCE_HEAD, SENTENCE_TAIL = 270, 100
QUOTED = re.compile("(“[^“”]*(?:”|$))")
"""A value in a sentence, whose own quotation marks were replaced."""
BOLD = re.compile(r"\*\*(.+?)\*\*", re.DOTALL)


def replace_hidden_characters(text: str, *, keep: str = "\n\t") -> str:
    """Replace every zero-width, bidirectional and control character with a token like ⟦U+202E⟧.

    Args:
        keep: control characters that stay because the page shows them, such as line breaks in a
            box.
    """
    return replace_hidden(text.replace("\r\n", "\n"), get_current_languages(), keep)


def render_text(text: str, *, keep: str = "\n\t") -> SafeString:
    """Escape text as HTML, with everything invisible as tokens, and a warning at hosts and words
    that mix alphabets.

    Hidden characters and unusual spaces are invisible. So is anything that pushes text out of
    sight: runs of blank lines, of spaces, and of marks on one letter. Each token says how much it
    replaces.
    """
    if (
        text.isascii()
        and text.isprintable()
        and PUNYCODE not in text.lower()
        and SPACE_RUN not in text
    ):
        return SafeString(html.escape(text))  # most texts hide nothing and have one alphabet
    text = text.replace("\r\n", "\n")
    pieces, at = [], 0
    languages = get_current_languages()
    for odd in _find_odd_parts(text, languages)[:MAX_HIGHLIGHTED]:
        pieces += [escape(text[at : odd.start]), _flag_part(text, odd, languages)]
        at = odd.end
    return SafeString(_reveal("".join([*pieces, escape(text[at:])]), keep))


def _reveal(shown: str, keep: str) -> str:
    """Replace invisible characters in escaped text with tokens; our own markup has none, but
    decoded hosts may."""
    shown = HIDDEN_SELECTOR.sub(lambda found: _render_token(found.group()), shown)
    shown = MARKS_ON_ONE_LETTER.sub(
        lambda found: found[1] + _render_note(f"{len(found[2])} more marks"), shown
    )
    if hidden := [char for char in set(shown) if char in ODD_SPACES or is_hidden(char, keep)]:
        ordinary = choose_ordinary_pattern(shown, get_current_languages()).pattern
        run = re.compile(f"{ordinary}|([{re.escape(''.join(hidden))}])\\1*")
        shown = run.sub(
            lambda found: _render_token(found[1], len(found[0])) if found[1] else found[0], shown
        )
    shown = BLANK_LINES.sub(
        lambda found: f"\n{_render_note(f'{count_lines(found[0])} blank lines')}\n", shown
    )
    return MANY_SPACES.sub(lambda found: f" {_render_note(f'{len(found[0])} spaces')} ", shown)


def render_edges(text: str) -> SafeString:
    """Render a whole value: as `render_text` does, with tokens also for the spaces at its start and
    end."""
    if not (text[:1].isspace() or text[-1:].isspace()):
        return render_text(text)
    ends = {found.start() == 0: found for found in EDGE_SPACES.finditer(text)}
    start, end = ends.get(True), ends.get(False)
    middle = text[start.end() if start else 0 : end.start() if end else len(text)]
    before, after = (
        _render_note(_count_spaces(found.group())) if found else "" for found in (start, end)
    )
    return SafeString(f"{before}{render_text(middle)}{after}")


def _count_spaces(spaces: str) -> str:
    return f"{len(spaces)} space{'' if len(spaces) == 1 else 's'}"


def flag_odd_letters(text: str) -> str:
    """Add a warning after each host that mixes alphabets, and after each part that imitates another
    text."""
    if text.isascii() and PUNYCODE not in text.lower():
        return text
    pieces, at = [], 0
    languages = get_current_languages()
    for odd in _find_odd_parts(text, languages):
        is_odd = odd.letters or is_mixed_host(text[odd.start : odd.end], languages)
        pieces += [text[at : odd.end], f" {FLAG.format(odd.kind)}" if is_odd else ""]
        at = odd.end
    return "".join([*pieces, text[at:]])


def _find_odd_parts(text: str, languages: frozenset[str]) -> list[OddPart]:
    """Find hosts that mix alphabets or are encoded, and odd parts outside them, from left to
    right."""
    hosts = [
        OddPart(found.start(), found.end(), frozenset(), MIXED)
        for found in HOST.finditer(text)
        if PUNYCODE in found.group().lower() or is_mixed_host(found.group(), languages)
    ]
    host_places = {place for host in hosts for place in range(host.start, host.end)}
    parts = [part for part in find_odd_parts(text, languages) if part.start not in host_places]
    return sorted([*hosts, *parts], key=lambda odd: odd.start)


def render_sentence(text: str, ids: Mapping[str, str] | None = None) -> SafeString:
    """Render a card's sentence: names in **pairs** become chips, values in “quotes” are set apart,
    and line breaks become tokens. A name or value whose end was cut off is rendered the same way.

    Args:
        ids: the id of each name that may occur in the sentence.
    """
    parts = BOLD.split(f"{text}**" if text.count("**") % 2 else text)
    rendered = [render_words(part) for part in parts]
    rendered[1::2] = [render_chip(name, (ids or {}).get(name, "")) for name in parts[1::2]]
    return SafeString("".join(rendered))


def render_words(text: str) -> str:
    """Render Gadget's own words, with the values in “quotes” set apart."""
    pieces = QUOTED.split(text)
    shown: list[str] = [render_text(piece, keep="") for piece in pieces]
    shown[1::2] = [f'<bdi class="quoted">{piece}</bdi>' for piece in shown[1::2]]
    return "".join(shown)


def cut_sentence(text: str) -> tuple[str, str]:
    """Cut the start and the end of a long sentence, for `render_sentence`. If the end begins inside
    a name or a value, the opening sign is added before it."""
    head, tail = text[:SENTENCE_HEAD], text[-SENTENCE_TAIL:].lstrip("*")
    rest = text[: len(text) - len(tail)]
    if rest.count("**") % 2:
        return head, f"**{tail}"
    return head, f"“{tail}" if rest.rfind("“") > rest.rfind("”") else tail


def render_field_name(name: str) -> SafeString:
    """Render the name of a value, which others may have chosen, in its own element, at most 60
    characters long."""
    shown = name if len(name) <= MAX_FIELD_NAME else f"{name[: MAX_FIELD_NAME - 21]}…{name[-20:]}"
    return format_html('<bdi class="field-name">{}</bdi>', render_text(shown, keep=""))


def render_chip(name: str, id_: str = "") -> SafeString:
    """Render a name as a chip, set off from our own words: quoted, at most 40 characters long, and
    with its id."""
    shown = cut_middle(name)
    title = (
        format_html(' title="{}"', replace_hidden_characters(name, keep=""))
        if shown != name
        else ""
    )
    return format_html(
        '<strong class="chip"{}><bdi>{}</bdi></strong>{}',
        title,
        render_text(shown, keep=""),
        render_id(id_),
    )


def render_id(id_: str) -> SafeString:
    """Render the id of a named item after its name: a number as `#7`, any other text in an element
    of its own. Empty if there is no id."""
    is_number = id_.isascii() and id_.isdecimal()
    number = f"#{id_}" if is_number else ""
    shown = render_text(cut_middle(number or id_), keep="")
    inner = shown if is_number else format_html('<bdi class="quoted">{}</bdi>', shown)
    return format_html(' <span class="chip-id">{}</span>', inner) if id_ else SafeString("")


def quote_outside(text: str, longest: int = MAX_QUOTED) -> str:
    """Quote text that others wrote in one line of plain text, for an attribute, a title or a
    message."""
    return quote_text(text, get_current_languages(), longest)


def render_value(value: Any) -> SafeString:
    """Render a JSON value in its own element; fold it if it has more than 200 characters or 8
    lines.

    A folded value shows its start, its end, its length and the addresses in between.
    """
    text = format_json_value(value).replace("\r\n", "\n")
    if not is_long(text):
        return format_html('<bdi class="value">{}</bdi>', render_edges(text))
    head, tail = _cut_ends(text)
    return format_html(
        '<details class="clamp"><summary><bdi class="value">{}</bdi> <span class="gap">[…]</span> '
        '<bdi class="value">{}</bdi> <span class="length">{} characters, open to read</span>{}</summary>'
        '<bdi class="value">{}</bdi></details>',
        render_text(head),
        render_edges(tail),
        f"{len(text):,}",
        render_folded_contacts(text, head, tail),
        render_edges(text),
    )


def _cut_ends(text: str) -> tuple[str, str]:
    """Cut the start and the end of a text; together they have fewer than 200 characters and only a
    few lines."""
    head = "\n".join(text[: MAX_LENGTH * 2 // 3].split("\n")[:HEAD_LINES])
    tail = "\n".join(text[-(MAX_LENGTH // 3) :].split("\n")[-TAIL_LINES:])
    return head, tail


def render_folded_contacts(text: str, head: str, tail: str) -> SafeString | str:
    """List the addresses in the folded part of a text, between its shown start and end."""
    shown = {
        (contact.kind, contact.value) for contact in (*list_contacts(head), *list_contacts(tail))
    }
    folded = [
        contact.value
        for contact in list_contacts(text)
        if (contact.kind, contact.value) not in shown
    ]
    if not folded:
        return ""
    more = (
        f" and {len(folded) - MAX_FOLDED_CONTACTS} more"
        if len(folded) > MAX_FOLDED_CONTACTS
        else ""
    )
    listed = format_html_join(
        ", ", "<bdi>{}</bdi>", ((render_text(one),) for one in folded[:MAX_FOLDED_CONTACTS])
    )
    return format_html(' <span class="folded-contacts">Contains {}{}</span>', listed, more)


def quote_employee(text: str) -> str:
    """Quote the employee in at most 280 characters of plain text in one line, without links."""
    plain = " ".join(LINK.sub("(link removed)", text).split())
    return plain if len(plain) <= MAX_QUOTE_LENGTH else plain[: MAX_QUOTE_LENGTH - 1] + "…"


def _flag_part(text: str, odd: OddPart, languages: frozenset[str]) -> str:
    """Render the host or odd part with its odd letters marked, followed by a warning."""
    part = text[odd.start : odd.end]
    if not odd.letters:
        return _flag_host(part, languages)
    letters = "".join(
        _mark_letter(each) if each[0] in odd.letters else escape(each)
        for each in CHARACTER_CLUSTER.findall(part)
    )
    # Only names are listed: hidden characters would become tokens inside the attribute.
    names = (unicodedata.name(char, "unknown").lower() for char in sorted(odd.letters)[:MAX_NAMED])
    named = ", ".join(names)
    return letters + format_html(
        '<span class="mixed-host" title="{}">{}</span>', named, FLAG.format(odd.kind)
    )


def _flag_host(host: str, languages: frozenset[str]) -> str:
    """Render a host with its odd letters marked; an encoded one is followed by its decoded form."""
    readable = decode_host(host)
    odd = {char for part in find_odd_parts(readable, languages) for char in part.letters}
    letters = "".join(_mark_letter(char) if char in odd else escape(char) for char in readable)
    flag = HOST_FLAG if is_mixed_host(host, languages) else ""
    if readable == host:
        return letters + flag
    return f'{escape(host)} <span class="decoded">reads {letters}</span>{flag}'


def _mark_letter(letter: str) -> str:
    """Mark a letter, with the combining marks that follow it."""
    return format_html(
        '<span class="odd-letter" title="{}">{}</span>',
        unicodedata.name(letter[0], "").lower(),
        letter,
    )


@functools.lru_cache(maxsize=4096)
def _render_token(char: str, count: int = 1) -> str:
    token = build_token(char) if count == 1 else f"{build_token(char)[:-1]} {TIMES}{count:,}⟧"
    return format_html(
        '<span class="hidden-character" title="{}">{}</span>', name_character(char), token
    )


def _render_note(what: str) -> str:
    return format_html('<span class="hidden-character">⟦{}⟧</span>', what)
