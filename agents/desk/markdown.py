"""Markdown that a model or a tool wrote, as HTML without images, without remote loads, with tame links."""

from __future__ import annotations

import nh3
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt

from .safe_text import visible_text

TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
    "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
PARSER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")


def render_markdown(text: str) -> SafeString:
    """Sanitised HTML; links only to http and https, and followed without a trace of this page."""
    html = PARSER.render(visible_text(text))
    clean = nh3.clean(
        html,
        tags=TAGS,
        attributes={"a": {"href"}, "*": set()},
        attribute_filter=_absolute_only,
        url_schemes={"http", "https"},
        url_relative="deny",
        link_rel="nofollow noopener noreferrer",
    )
    return SafeString(clean)


def _absolute_only(_tag: str, attribute: str, value: str) -> str | None:
    """Without the slashes `http:` means a path on this site, which no reader would guess."""
    is_tame = attribute != "href" or value.lower().startswith(("http://", "https://"))
    return value if is_tame else None
