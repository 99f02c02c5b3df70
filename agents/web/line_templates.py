"""The templates of the panel's lines, which are Jinja's: each event makes a line, and Django's take twice as long.

What a line holds of a page's own parts (a card, another employee's task, a run's end) comes to it as HTML.
"""

from __future__ import annotations

from typing import Any

from django.template.defaultfilters import truncatechars
from django.urls import reverse
from jinja2 import Environment, Undefined

from agents.web import template_filters

FILTERS = (
    *(
        template_filters.visible,
        template_filters.visible_lines,
        template_filters.plain,
        template_filters.plain_words,
        template_filters.as_sentence,
        template_filters.brief,
        template_filters.markdown,
    ),
    *(template_filters.thousands, template_filters.duration, template_filters.moment, truncatechars),
)


def environment(**options: Any) -> Environment:
    """Jinja with what the lines need; the options are those that Django gives. What is missing is shown as nothing."""
    options |= {"autoescape": True, "undefined": Undefined, "trim_blocks": True, "lstrip_blocks": True}
    made = Environment(**options)  # noqa: S701 - see above
    made.filters.update({each.__name__: each for each in FILTERS})
    made.globals.update(icon=template_filters.icon, url=reverse)
    return made
