"""Markdown that a model or a tool wrote, as HTML without images, without remote loads, with tame links.

Its headings go below the heading that it stands under, and each table gets a box that scrolls by itself and can be
reached with the keyboard.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import nh3
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.token import Token

from .safe_text import flagged_text, visible_text

TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
    "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
PARSER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")
TABLE_BOX = '<div class="table-box" tabindex="0" role="group" aria-label="Table">'
LOWEST_HEADING = 6
TEXTS = frozenset({"text", "code_inline", "code_block", "fence"})


def render_markdown(text: str, under: int = 2) -> SafeString:
    """Sanitised HTML; links only to http and https, and followed without a trace of this page.

    Args:
        under: level of the heading that the text stands under, 1 to 6.
    """
    tokens = PARSER.parse(visible_text(text))
    for token in _all_of(tokens):
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + under, LOWEST_HEADING)}"
        elif token.type in TEXTS:  # once more, because the parser has turned entities into characters
            token.content = flagged_text(visible_text(token.content))
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
    # Sanitised tables have no attributes, and whatever else looks like their tags is escaped.
    return SafeString(clean.replace("<table>", TABLE_BOX + "<table>").replace("</table>", "</table></div>"))


def _all_of(tokens: Iterable[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _all_of(token.children or ())


def _absolute_only(_tag: str, attribute: str, value: str) -> str | None:
    """Without the slashes `http:` means a path on this site, which no reader would guess."""
    is_tame = attribute != "href" or value.lower().startswith(("http://", "https://"))
    return value if is_tame else None
