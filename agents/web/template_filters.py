"""Template filters that show text from models, tools, records and people safely, or format numbers
and times."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, time
from functools import lru_cache
from typing import Any

from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from agents.runs.budgets import format_money
from agents.runs.models import Run, RunStatus
from agents.runs.status_labels import StatusLabel, label_status
from agents.web.cards.edit_form import simplify_complaint
from agents.web.cards.effects import AffectedTarget, Effect
from agents.web.panel.json_html import render_tree
from agents.web.text import durations, safe_text
from agents.web.text.markdown import render_markdown
from tools.contract.outside_text import MAX_QUOTED, OutsideText, cut_middle

FIRST_SEPARATED = 10_000
LINE_BREAKS = re.compile(r"[ \t\r\n]+")


@lru_cache(maxsize=256)
def icon(name: str) -> SafeString:
    """Show an icon from `parts/icons.svg`, which every page includes once; screen readers skip
    it."""
    return format_html('<svg class="icon" aria-hidden="true"><use href="#i-{}"/></svg>', name)


def visible(value: object) -> SafeString:
    """Show text on one line, with hidden characters as tokens; use it for all text that others
    wrote. An `OutsideText` becomes a chip."""
    if isinstance(value, OutsideText):
        return safe_text.render_chip(value)
    return safe_text.render_text(str(value), keep="")


def one_line(value: object) -> SafeString:
    """Show text of several lines on one line, with a space for each line break."""
    return visible(LINE_BREAKS.sub(" ", str(value)))


def plain(value: object) -> str:
    """Return text for an HTML attribute, with hidden characters as tokens. An `OutsideText` is
    quoted."""
    if isinstance(value, OutsideText):
        return safe_text.quote_outside(value)
    return safe_text.replace_hidden_characters(str(value), keep="")


def is_cut(text: str) -> bool:
    """Return True if the text is too long to be shown whole in quotation marks or in a chip."""
    return cut_middle(text) != text


def tool_words(text: object, is_outside: bool) -> SafeString:
    """Show words of a tool, in quotation marks unless the tool ships with Gadget."""
    shown = visible(text)
    return format_html("<q>{}</q>", shown) if is_outside and text else shown


def visible_lines(value: object) -> SafeString:
    """Show text with its line breaks, and with hidden characters as tokens."""
    return safe_text.render_text(str(value))


def json_value(value: Any) -> SafeString:
    """Show a JSON value; a long value is folded, with its length."""
    return safe_text.render_value(value)


def attribute_value(value: Any) -> SafeString | str:
    """Show the value of a record's attribute; large numbers get separators, but numbers as small
    as a year do not."""
    return (
        f"{value:,}"
        if type(value) in (int, float) and abs(value) >= FIRST_SEPARATED
        else json_value(value)
    )


def sentence(value: str, ids: Mapping[str, str] | None = None) -> SafeString:
    """Show a card's sentence with its names as chips.

    Args:
        ids: the ids of names that may occur in the sentence, by name.
    """
    return safe_text.render_sentence(value, ids)


def quoted_words(text: str) -> SafeString:
    """Show Gadget's own words, with the words of others in “quotes” set apart."""
    return SafeString(safe_text.render_words(text))


def field_name(name: object) -> SafeString:
    """Render the name of a value, set off from our own words."""
    return safe_text.render_field_name(str(name))


def chip(name: object, id_: str = "") -> SafeString:
    """Render a name as a chip, set off from our own words, with its id."""
    return safe_text.render_chip(str(name), id_)


def item_id(id_: str) -> SafeString:
    """Show the id of an item after its name."""
    return safe_text.render_id(id_)


def quote(text: object, longest: int = MAX_QUOTED) -> str:
    """Quote text that others wrote, for an attribute or a page's title, which cannot contain a
    chip."""
    return safe_text.quote_outside(str(text), longest)


def tree(value: Any) -> SafeString:
    """Show JSON data as nested lists that fold."""
    return render_tree(value)


def markdown(text: str) -> SafeString:
    """Render Markdown as sanitized HTML."""
    return render_markdown(text)


def json_text(value: Any) -> SafeString:
    """Show a value as indented JSON, with hidden characters as tokens."""
    return safe_text.render_text(json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True))


def money(micros: int, currency: str) -> str:
    """Format an amount in millionths of the currency: `12.40 USD`."""
    return format_money(micros, currency)


def thousands(number: int) -> str:
    """Format a number: `100,000`."""
    return f"{number:,}"


def plural(count: int, many: str = "s", one: str = "") -> str:
    """Choose a word's ending: `{{ count }} pass{{ count|plural("es") }}`."""
    return one if count == 1 else many


def duration(milliseconds: int | None) -> str:
    """Format a duration: `340 ms`, `1.2 s` or `3 min 5 s`; empty for None."""
    return "" if milliseconds is None else durations.format_duration(milliseconds)


def moment(at: datetime | None) -> SafeString | str:
    """Show a time as `5 min ago` or `in 3 h` up to a day, then as a date, with the exact time on
    hover.

    A script keeps it up to date and converts it to the reader's zone.
    """
    return (
        "" if at is None else _render_time(at, durations.format_age(at, timezone.now()), "data-ago")
    )


def date_time(at: datetime | None) -> SafeString | str:
    """Show a time in UTC to the minute, with the exact time on hover; a script converts it to the
    reader's zone."""
    return "" if at is None else _render_time(at, durations.format_time(at), "")


def _render_time(at: datetime, text: str, attribute: str) -> SafeString:
    at = timezone.localtime(at, timezone.get_default_timezone())
    html = f'<time datetime="{at.isoformat()}" title="{exact_time(at)}" {attribute}>{text}</time>'
    return mark_safe(html)  # noqa: S308 - made of a time alone, and a list may have a thousand of them


def exact_time(at: datetime) -> str:
    """Format a time in UTC to the second."""
    return durations.format_time(at, "%H:%M:%S")


def countdown(at: datetime | None) -> str:
    """Format a time as `in 12 s`, or as `now` once it has passed."""
    if at is None:
        return ""
    left = round((at - timezone.now()).total_seconds())
    return f"in {left} s" if left > 0 else "now"


def time_since(since: datetime) -> str:
    """Format the time that has passed since this moment: `12 s`, `3 min`, `2 h 5 min`, `4 d 1 h`; a
    script keeps it up to date."""
    return durations.format_whole_duration(round((timezone.now() - since).total_seconds()))


def clock(at: time | None) -> str:
    """Show a time of day in the form's format, such as `08:30`; empty for None."""
    return "" if at is None else f"{at:%H:%M}"


def as_sentence(text: str) -> str:
    """Start the text with a capital letter, unless it starts with a URL, and end it with a
    period."""
    start = text[:1] if text.startswith(("http://", "https://")) else text[:1].upper()
    return f"{start}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"


def plain_words(complaint: str) -> str:
    """Reword a validator's complaint about an input in plain words."""
    return simplify_complaint(complaint, is_named=True)


def status_label(run: Run) -> str:
    """Describe a run's status: `Running`, `Waiting for an answer`, `Stopped: out of passes`.

    Raises:
        AttributeError: the run waits, but was loaded without `annotate_waits`.
    """
    return _label_run(run).text


def status_look(run: Run) -> str:
    """Return the look of a run's status, such as `good`."""
    return _label_run(run).look


def status_icon(run: Run) -> str:
    """Return the name of the icon of a run's status."""
    return _label_run(run).icon


def _label_run(run: Run) -> StatusLabel:
    waits_for = run.waits_for if run.status == RunStatus.WAITING else ""  # type: ignore[attr-defined]
    return label_status(run.status, run.exit_reason or waits_for, run.outcome)


def words(name: str) -> str:
    """Turn `needs_attention` into `needs attention`."""
    return name.replace("_", " ")


def column_values(target: AffectedTarget, effect: Effect) -> list[Any]:
    """List the target's values in the order of the effect's columns; None for a field that it does
    not have."""
    values = {
        change.name: change.after if effect.row_state == "created" else change.before
        for change in target.changes
    }
    return [values.get(name) for name in effect.columns]
