"""Markdown that a model or a tool wrote, as HTML without images, without remote loads, with tame links.

Its headings go below the heading that it stands under, and each table gets a box that scrolls by itself and can be
reached with the keyboard.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import nh3
from django.utils.asyncio import async_unsafe
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from typing_extensions import override

from agents.web.text.html_cache import HtmlCache
from agents.web.text.safe_text import flagged_text, visible_text

TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
    "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
PARSER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")
TABLE_BOX = '<div class="table-box" tabindex="0" role="group" aria-label="Table">'
LOWEST_HEADING = 6
TEXTS = frozenset({"text", "code_inline", "code_block", "fence"})

PORTION = 20_000
"""Characters; the limits below apply to texts up to this length."""
MAX_PORTIONS = 3
"""A longer text gets the limits of this many portions."""
MAX_TOKENS = 10_000
"""Openings, closings and texts; a table's cell has four."""
MAX_BRACKETS = 600
"""The parser looks behind each for a link."""
MAX_LINES = 4_000
MAX_VISIBLE = 60_000
"""Characters once each hidden one is written as ⟦U+200B⟧: the parser would read all of them."""
MAX_HTML = 190_000
"""Bytes."""
DEEPEST = 19
"""Two levels for each list, one for each quotation; the parser would leave out what is deeper."""
SPARE = 500
LARGEST_CHARACTER = 16
"""Bytes of HTML that one character may become: a hidden one stands as ⟦U+E0001⟧."""
NOTE = "Too complex to format: shown as written."
CUT_NOTE = "Too complex to format and too long to show: only the beginning is shown, as written."
KEPT = HtmlCache()


class _Intricate(Exception):
    """The text would take too long to render, or become too long."""


class _Bounded(list[Token]):
    """Tokens of one text, or of a part of it; `left` says how many more the whole text may have."""

    def __init__(self, left: list[int]) -> None:
        super().__init__()
        self._left = left

    @override
    def append(self, token: Token) -> None:
        self._left[0] -= 1
        if self._left[0] < 0 or token.level >= DEEPEST:
            raise _Intricate
        super().append(token)


def _parse_blocks(state: StateCore) -> None:
    state.tokens = _Bounded(state.env["left"])
    state.md.block.parse(state.src, state.md, state.env, state.tokens)


def _parse_inlines(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline":
            token.children = _Bounded(state.env["left"])
            state.md.inline.parse(token.content, state.md, state.env, token.children)


PARSER.core.ruler.at("block", _parse_blocks)
PARSER.core.ruler.at("inline", _parse_inlines)


@async_unsafe("Markdown is rendered in threads, never in the event loop.")
def render_markdown(text: str, under: int = 2) -> SafeString:
    """Return sanitized HTML; links only to http and https, and followed without a trace of this page.

    A text too intricate to render in a moment is shown as it was written. Each text is rendered once and kept.

    Args:
        under: level of the heading that the text stands under, 1 to 6.
    """
    return KEPT.get(text, lambda text: render_uncached(text, under), under)


def render_uncached(text: str, under: int = 2) -> SafeString:
    """Render without the cache."""
    portions = min(max(len(text) / PORTION, 1), MAX_PORTIONS)
    try:
        return _as_markdown(text, under, portions)
    except _Intricate:
        return _as_written(text, int(MAX_HTML * portions))


def _as_markdown(text: str, under: int, portions: float) -> SafeString:
    if text.count("[") > MAX_BRACKETS * portions or text.count("\n") > MAX_LINES * portions:
        raise _Intricate
    readable = visible_text(text)
    if len(readable) > MAX_VISIBLE * portions:
        raise _Intricate
    tokens = PARSER.parse(readable, {"left": [int(MAX_TOKENS * portions)]})
    size = 0
    for token in _all_of(tokens):
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + under, LOWEST_HEADING)}"
        elif token.type in TEXTS:  # once more, because the parser has turned entities into characters
            token.content = flagged_text(visible_text(token.content))
            size += len(token.content)
        size += sum(len(str(value)) for value in token.attrs.values())
        if size > MAX_HTML * portions:
            raise _Intricate
    html = PARSER.renderer.render(tokens, PARSER.options, {})
    clean = nh3.clean(
        html,
        tags=TAGS,
        attributes={"a": {"href"}, "*": set()},
        attribute_filter=_absolute_only,
        url_schemes={"http", "https"},
        url_relative="deny",
        link_rel="nofollow noopener noreferrer",
    )
    # Sanitized tables have no attributes, and whatever else looks like their tags is escaped.
    boxed = clean.replace("<table>", TABLE_BOX + "<table>").replace("</table>", "</table></div>")
    if len(boxed.encode()) > MAX_HTML * portions:
        raise _Intricate
    return SafeString(boxed)


def _as_written(text: str, most: int) -> SafeString:
    """Return the text in a box, unformatted; cut it with a note where it would make too much HTML."""
    readable = visible_text(text)
    if len(readable) + SPARE <= most:
        shown = escape(flagged_text(readable))
        if len(shown.encode()) + SPARE <= most:
            return format_html("<p><em>{}</em></p><pre>{}</pre>", NOTE, shown)
    beginning = escape(flagged_text(visible_text(text[: (most - SPARE) // LARGEST_CHARACTER])))
    return format_html("<p><em>{}</em></p><pre>{}</pre>", CUT_NOTE, beginning)


def _all_of(tokens: Iterable[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _all_of(token.children or ())


def _absolute_only(_tag: str, attribute: str, value: str) -> str | None:
    """Without the slashes `http:` means a path on this site, which no reader would guess."""
    is_tame = attribute != "href" or value.lower().startswith(("http://", "https://"))
    return value if is_tame else None
