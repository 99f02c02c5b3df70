"""The Jinja environment for all templates of pages, cards and panel lines; only the admin uses
Django templates."""

from __future__ import annotations

from functools import lru_cache, partial
from types import BuiltinMethodType, MethodType
from typing import Any

from django.template import defaultfilters
from django.templatetags.static import static
from django.urls import get_script_prefix, get_urlconf, reverse
from jinja2 import Environment, StrictUndefined

from agents.approvals.attention import CLAIM_MINUTES
from agents.web import template_filters
from agents.web.frame.theme import read_theme
from agents.web.panel.slots import build_line_url
from agents.web.text.initials import build_initials

JINJA = "jinja2"
"""Django's name for this template engine."""
FILTERS = (
    template_filters.visible,
    template_filters.visible_lines,
    template_filters.one_line,
    template_filters.plain,
    template_filters.json_value,
    template_filters.attribute_value,
    template_filters.json_text,
    template_filters.sentence,
    template_filters.chip,
    template_filters.field_name,
    template_filters.item_id,
    template_filters.quoted_words,
    template_filters.quote,
    template_filters.is_cut,
    template_filters.tool_words,
    template_filters.as_sentence,
    template_filters.clock,
    template_filters.plain_words,
    template_filters.words,
    template_filters.markdown,
    template_filters.tree,
    template_filters.money,
    template_filters.thousands,
    template_filters.plural,
    template_filters.duration,
    template_filters.moment,
    template_filters.date_time,
    template_filters.exact_time,
    template_filters.countdown,
    template_filters.status_label,
    template_filters.status_look,
    template_filters.status_icon,
    template_filters.time_since,
    template_filters.column_values,
)
DJANGO_FILTERS = {
    "date": defaultfilters.date,
    "initials": build_initials,
    "filesizeformat": defaultfilters.filesizeformat,
    "timesince": defaultfilters.timesince_filter,
    "truncatechars": defaultfilters.truncatechars,
}


def create_environment(**options: Any) -> Environment:
    """Create the environment; an undefined name in a template is an error.

    Args:
        options: Django's options, such as the loader and automatic reloading.
    """
    options |= {
        "autoescape": True,
        "undefined": StrictUndefined,
        "trim_blocks": True,
        "lstrip_blocks": True,
    }
    environment = Environment(finalize=reject_method, **options)  # noqa: S701 - autoescape is one of the options
    environment.filters.update(
        DJANGO_FILTERS | {function.__name__: function for function in FILTERS}
    )
    links = {"static": static, "url": build_url, "line_url": build_line_url}
    environment.globals.update(
        icon=template_filters.icon, read_theme=read_theme, claim_minutes=CLAIM_MINUTES, **links
    )
    return environment


_SOME_ID = 987654321
"""An id that does not occur anywhere else in an address."""


def build_url(name: str, *args: object, **kwargs: object) -> str:
    """Build the address of a page; templates call it as `url("run", run.pk)`."""
    if len(args) == 1 and isinstance(args[0], int) and args[0] >= 0 and not kwargs:
        before, after = _split_address(name, get_script_prefix(), get_urlconf())
        return f"{before}{args[0]}{after}"
    return reverse(name, args=args, kwargs=kwargs)


@lru_cache(maxsize=256)
def _split_address(name: str, _prefix: str, urlconf: str | None) -> tuple[str, str]:
    """Split an address around its id; the result is cached, because a list can have a thousand
    addresses."""
    before, _, after = reverse(name, urlconf=urlconf, args=(_SOME_ID,)).partition(str(_SOME_ID))
    return before, after


def reject_method(value: Any) -> Any:
    """Return the value that a template prints, unless it is a method.

    Raises:
        TypeError: the value is a method. Without parentheses, Jinja prints a method instead of
            calling it.
    """
    if isinstance(value, (MethodType, BuiltinMethodType, partial)):
        raise TypeError(f"A template prints the method {value!r}. Add parentheses to call it.")
    return value
