"""Markdown from models and tools, rendered as HTML without images and other remote content, and
with safe links only.

Headings are lowered below the heading above the text. Each table gets its own scroll box that the
keyboard can reach.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import nh3
from django.utils.asyncio import async_unsafe
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from typing_extensions import override

from agents.accounts.languages import get_current_languages
from agents.web.text.safe_text import flag_odd_letters, replace_hidden_characters
from tools.caches import Cache

TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
    "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
PARSER = (
    MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")
)
TABLE_BOX = '<div class="table-box" tabindex="0" role="group" aria-label="Table">'
LOWEST_HEADING = 6
TEXT_TOKENS = frozenset({"text", "code_inline", "code_block", "fence"})

PORTION = 20_000
"""The length of a portion, in characters; the limits below are for one portion."""
MAX_PORTIONS = 3
"""The maximum number of portions by which the limits below are multiplied for a long text."""
MAX_TOKENS = 10_000
"""The maximum number of opening, closing and text tokens in a portion; a table cell takes four."""
MAX_BRACKETS = 600
"""The maximum number of opening brackets in a portion; the parser searches for a link after each
bracket."""
MAX_LINES = 4_000
MAX_READABLE = 60_000
"""The maximum number of characters, counted after each hidden character is written as ⟦U+200B⟧,
because the parser reads all of them."""
MAX_HTML = 190_000
"""The maximum size of the HTML, in bytes."""
MAX_DEPTH = 19
"""The maximum number of nested levels; a list takes two, a quotation one. The parser would drop
deeper content."""
MARKUP_RESERVE = 500
LARGEST_CHARACTER = 16
"""The maximum number of bytes of HTML for one character: a hidden character becomes ⟦U+E0001⟧."""
NOTE = "Too complex to format. Shown as written."
CUT_NOTE = "Too complex to format and too long to show. Only the beginning is shown, as written."
MAX_CACHED = 8_000_000
_HTML: Cache[bytes, SafeString] = Cache(MAX_CACHED, weigh=len)
"""The rendered HTML, by the hash of the text, the heading level and the languages; source texts are
not stored."""


class _TooComplex(Exception):
    """The text would take too long to render, or its HTML would be too large."""


class _BoundedTokens(list[Token]):
    """A list of tokens that stops at the text's limit; all lists of one text share the counter
    `left`."""

    def __init__(self, left: list[int]) -> None:
        super().__init__()
        self._left = left

    @override
    def append(self, token: Token) -> None:
        self._left[0] -= 1
        if self._left[0] < 0 or token.level >= MAX_DEPTH:
            raise _TooComplex
        super().append(token)


def _parse_blocks(state: StateCore) -> None:
    state.tokens = _BoundedTokens(state.env["left"])
    state.md.block.parse(state.src, state.md, state.env, state.tokens)


def _parse_inlines(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline":
            token.children = _BoundedTokens(state.env["left"])
            state.md.inline.parse(token.content, state.md, state.env, token.children)


PARSER.core.ruler.at("block", _parse_blocks)
PARSER.core.ruler.at("inline", _parse_inlines)


@async_unsafe("Markdown is rendered in threads, never in the event loop.")
def render_markdown(text: str, under: int = 2) -> SafeString:
    """Render Markdown as sanitized HTML, with links to http and https only, which send no referrer.

    A text that is too complex to render quickly is shown as written. The HTML is cached
    separately for the languages of each reader's organization.

    Args:
        under: the level of the heading above the text, 1 to 6.
    """
    languages = " ".join(sorted(get_current_languages()))
    key = hashlib.sha256(f"{under}:{languages}:{text}".encode("utf-8", "surrogatepass")).digest()
    return _HTML.get_or_load(key, lambda: render_uncached(text, under))


def render_uncached(text: str, under: int = 2) -> SafeString:
    """Render Markdown without the cache."""
    portions = min(max(len(text) / PORTION, 1), MAX_PORTIONS)
    try:
        return _format_markdown(text, under, portions)
    except _TooComplex:
        return _show_as_written(text, int(MAX_HTML * portions))


def _format_markdown(text: str, under: int, portions: float) -> SafeString:
    if text.count("[") > MAX_BRACKETS * portions or text.count("\n") > MAX_LINES * portions:
        raise _TooComplex
    readable = replace_hidden_characters(text)
    if len(readable) > MAX_READABLE * portions:
        raise _TooComplex
    tokens = PARSER.parse(readable, {"left": [int(MAX_TOKENS * portions)]})
    size = 0
    for token in _walk_tokens(tokens):
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + under, LOWEST_HEADING)}"
        elif token.type in TEXT_TOKENS:
            # Again, because the parser has turned entities into characters.
            token.content = flag_odd_letters(replace_hidden_characters(token.content))
            size += len(token.content)
        size += sum(len(str(value)) for value in token.attrs.values())
        if size > MAX_HTML * portions:
            raise _TooComplex
    html = PARSER.renderer.render(tokens, PARSER.options, {})
    clean = nh3.clean(
        html,
        tags=TAGS,
        attributes={"a": {"href"}, "*": set()},
        attribute_filter=_keep_absolute_link,
        url_schemes={"http", "https"},
        url_relative="deny",
        link_rel="nofollow noopener noreferrer",
    )
    # Safe to replace: sanitized tables have no attributes, and any other text like their tags is
    # escaped.
    boxed = clean.replace("<table>", TABLE_BOX + "<table>").replace("</table>", "</table></div>")
    if len(boxed.encode()) > MAX_HTML * portions:
        raise _TooComplex
    return SafeString(boxed)


def _show_as_written(text: str, max_bytes: int) -> SafeString:
    """Return the unformatted text in a box; cut it, with a note, if its HTML would be too large."""
    room = max_bytes - MARKUP_RESERVE
    readable = replace_hidden_characters(text)
    if len(readable) <= room and len((shown := _escape(readable)).encode()) <= room:
        return format_html("<p><em>{}</em></p><pre>{}</pre>", NOTE, shown)
    kept = room // LARGEST_CHARACTER
    while len((shown := _escape(text[:kept])).encode()) > room:  # flags can exceed the estimate
        kept = kept * 3 // 4
    return format_html("<p><em>{}</em></p><pre>{}</pre>", CUT_NOTE, shown)


def _escape(text: str) -> SafeString:
    """Escape a text for HTML, and make hidden characters and odd letters visible."""
    return escape(flag_odd_letters(replace_hidden_characters(text)))


def _walk_tokens(tokens: Iterable[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _walk_tokens(token.children or ())


def _keep_absolute_link(_tag: str, attribute: str, value: str) -> str | None:
    """Keep only absolute links: `http:` without slashes means a path on this site, which no reader
    would expect."""
    is_safe = attribute != "href" or value.lower().startswith(("http://", "https://"))
    return value if is_safe else None
