"""The admin's pages are made by others: what hides in their texts is brought to light here, in the finished page."""

from __future__ import annotations

import re

from django import template
from django.utils.safestring import SafeString

from agents.web.text.safe_text import visible_text

register = template.Library()

# What a form sends back and what a browser runs, as a whole; and tags, whose quoted values may hold a `>`.
MARKUP = re.compile(
    r"""<(?P<whole>textarea|script|style)\b[^>]*+>.*?</(?P=whole)\s*+>|<[a-z/!](?:[^"'<>]++|"[^"]*+"|'[^']*+')*+>""",
    re.IGNORECASE | re.DOTALL,
)
# Values that are read by people, or to them.
READ = re.compile(r"""(\s(?:title|alt|aria-label|placeholder)=)("[^"]*+"|'[^']*+')""", re.IGNORECASE)


@register.filter
def shows_hidden(html: str) -> SafeString:
    """The HTML with hidden characters as tokens, but as they are in the values of its forms."""
    parts, place = [], 0
    for found in MARKUP.finditer(html):
        parts.append(visible_text(html[place : found.start()]))
        parts.append(found.group() if found["whole"] else READ.sub(_value, found.group()))
        place = found.end()
    return SafeString("".join((*parts, visible_text(html[place:]))))


def _value(found: re.Match[str]) -> str:
    return found[1] + visible_text(found[2])
