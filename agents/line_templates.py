"""The templates of the panel's lines, which are Jinja's: each event makes a line, and Django's take twice as long.

What a line holds of a page's own parts (a card, another employee's task, a run's end) comes to it as HTML.
"""

from __future__ import annotations

from typing import Any

from django.template.defaultfilters import truncatechars
from django.urls import reverse
from jinja2 import Environment, Undefined

from agents.templatetags import desk

FILTERS = (
    *(desk.visible, desk.visible_lines, desk.plain, desk.plain_words, desk.as_sentence, desk.brief, desk.markdown),
    *(desk.thousands, desk.duration, desk.moment, truncatechars),
)


def environment(**options: Any) -> Environment:
    """Jinja with what the lines need; the options are those that Django gives. What is missing is shown as nothing."""
    options |= {"autoescape": True, "undefined": Undefined, "trim_blocks": True, "lstrip_blocks": True}
    made = Environment(**options)  # noqa: S701 - see above
    made.filters.update({each.__name__: each for each in FILTERS})
    made.globals.update(icon=desk.icon, url=reverse)
    return made
