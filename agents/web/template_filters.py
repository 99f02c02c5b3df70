"""Filters through which templates show what models, tools, records and people wrote."""

from __future__ import annotations

import json
import re
from datetime import datetime
from functools import lru_cache
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.employees.budgets import MICROS, in_words
from agents.runs.models import ExitReason, Run, RunStatus
from agents.web.cards.edit_form import plainly
from agents.web.cards.effects import Effect, TargetView
from agents.web.text import durations, safe_text
from agents.web.text.markdown import render_markdown

register = template.Library()

LAID_OUT = re.compile(r"[ \t\r\n]+")


@register.simple_tag
@lru_cache(maxsize=256)
def icon(name: str) -> SafeString:
    """A symbol of `parts/icons.svg`, which every page holds once; the word beside it says the same."""
    return format_html('<svg class="icon" aria-hidden="true"><use href="#i-{}"/></svg>', name)


@register.filter
def visible(value: object) -> SafeString:
    """Text in one line, hidden characters as tokens; the filter for everything that others wrote."""
    return safe_text.visible(str(value), keep="")


@register.filter
def folded(value: object) -> SafeString:
    """Like `visible`, of a text that may have many lines: they become one, each break a blank."""
    return visible(LAID_OUT.sub(" ", str(value)))


@register.filter
def plain(value: object) -> str:
    """Like `visible`, as text for an attribute."""
    return safe_text.visible_text(str(value), keep="")


@register.filter
def visible_lines(value: object) -> SafeString:
    """Like `visible`, but line breaks stay."""
    return safe_text.visible(str(value))


@register.filter
def shown(value: Any) -> SafeString:
    """A JSON value, clamped with its length when it is long."""
    return safe_text.shown(value)


@register.filter
def sentence(value: str) -> SafeString:
    """A card's sentence with its bold parts."""
    return safe_text.sentence(value)


@register.filter
def brief(params: dict[str, Any]) -> SafeString:
    """Params in one short line."""
    return safe_text.visible(safe_text.brief(params), keep="")


@register.filter
def markdown(text: str) -> SafeString:
    """Sanitised HTML."""
    return render_markdown(text)


@register.filter
def json_text(value: Any) -> SafeString:
    """Indented JSON, hidden characters as tokens."""
    return safe_text.visible(json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True))


@register.filter
def money(micros: int, currency: str) -> str:
    """`12.40 USD`."""
    return in_words(micros, currency)


@register.filter
def amount(cost: float, currency: str) -> str:
    """The same for a cost as events carry it."""
    return in_words(round(cost * MICROS), currency)


@register.filter
def thousands(number: int) -> str:
    """`100,000`."""
    return f"{number:,}"


@register.filter
def duration(milliseconds: int | None) -> str:
    """`340 ms`, `1.2 s`, `3 min 5 s`; nothing for what has not ended."""
    return "" if milliseconds is None else durations.in_words(milliseconds)


@register.filter
def moment(at: datetime | None) -> SafeString | str:
    """A time in UTC, to the minute, that the page's script turns into the reader's own; its title is exact."""
    if at is None:
        return ""
    at = timezone.localtime(at, timezone.get_default_timezone())
    text = at.strftime("%-d %b %Y, %H:%M UTC")
    return format_html('<time datetime="{}" title="{}">{}</time>', at.isoformat(), exactly(at), text)


@register.filter
def exactly(at: datetime) -> str:
    """A time in UTC, to the second."""
    return timezone.localtime(at, timezone.get_default_timezone()).strftime("%-d %b %Y, %H:%M:%S UTC")


@register.filter
def until(at: datetime | None) -> str:
    """`in 12 s`, or `now` once it is past."""
    if at is None:
        return ""
    left = round((at - timezone.now()).total_seconds())
    return f"in {left} s" if left > 0 else "now"


@register.filter
def as_sentence(text: str) -> str:
    """With a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"


@register.filter
def plain_words(complaint: str) -> str:
    """What is wrong with a param, without the words that are for programs."""
    return plainly(complaint, is_named=True)


@register.filter
def state(run: Run) -> str:
    """Where a run stands: `Running`, `Waiting for an answer`.

    Raises:
        AttributeError: it waits, and `with_waits` has not read for what.
    """
    waits_for = run.waits_for if run.status == RunStatus.WAITING else ""  # type: ignore[attr-defined]
    return f"Waiting for {waits_for}" if waits_for else run.get_status_display()


@register.filter
def words(name: str) -> str:
    """`needs_attention` as `needs attention`."""
    return name.replace("_", " ")


_SHOWN_BY_LABEL = (ExitReason.MAX_PASSES, ExitReason.ANSWER_CUT, ExitReason.ANSWER_FILTERED)


@register.filter
def exit_reason(name: str) -> str:
    """Write `max_passes` as `Out of passes`, `provider_error` as `Provider error`."""
    return ExitReason(name).label if name in _SHOWN_BY_LABEL else words(name).capitalize()


@register.filter
def row(target: TargetView, effect: Effect) -> list[Any]:
    """The target's values in the order of the effect's columns; None where it has no such field."""
    values = {change.name: change.after if effect.side == "made" else change.before for change in target.changes}
    return [values.get(name) for name in effect.columns]
