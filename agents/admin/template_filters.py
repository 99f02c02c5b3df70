"""Template filters of the admin. One filter reveals hidden characters in finished pages, because it
cannot be applied inside the pages' templates, which come from Django."""

from __future__ import annotations

import re

from django import template
from django.utils.safestring import SafeString

from agents.web import template_filters
from agents.web.text.safe_text import replace_hidden_characters

register = template.Library()
for each in (
    *(template_filters.visible, template_filters.visible_lines, template_filters.plain),
    template_filters.quote,
    *(template_filters.json_value, template_filters.thousands),
):
    register.filter(each.__name__, each)

# Whole elements whose content must not change, because a form sends it or a browser runs it; and
# all tags, whose quoted values may contain a `>`.
MARKUP = re.compile(
    r"""<(?P<whole>textarea|script|style)\b[^>]*+>.*?</(?P=whole)\s*+>|<[a-z/!](?:[^"'<>]++|"[^"]*+"|'[^']*+')*+>""",
    re.IGNORECASE | re.DOTALL,
)
# Attributes that people read, on the screen or with a screen reader.
READ = re.compile(
    r"""(\s(?:title|alt|aria-label|placeholder)=)("[^"]*+"|'[^']*+')""", re.IGNORECASE
)


@register.filter
def reveal_hidden(html: str) -> SafeString:
    """Show hidden characters as tokens everywhere in the HTML except in the values of its forms."""
    parts, position = [], 0
    for found in MARKUP.finditer(html):
        parts.append(replace_hidden_characters(html[position : found.start()]))
        parts.append(found.group() if found["whole"] else READ.sub(_reveal_in_value, found.group()))
        position = found.end()
    return SafeString("".join((*parts, replace_hidden_characters(html[position:]))))


def _reveal_in_value(found: re.Match[str]) -> str:
    return found[1] + replace_hidden_characters(found[2])
