"""Sentences about records for the card: made by us, from values that may be hostile."""

import re
from collections.abc import Mapping
from typing import Any

from tools.contract import Preview, Target, canonical_json
from tools.records.fields import Selection

LONGEST_NAME = 80
LONGEST_VALUE = 60
MOST_CHANGES = 4
TAMED = str.maketrans({"*": "\u2217", "“": "'", "”": "'"})
PLAIN = re.compile(r"[\w.@+-]+")


def bold(name: str) -> str:
    """The name between `**`, on one line, without stars of its own, at most 80 characters."""
    return f"**{_tamed(name, LONGEST_NAME)}**"


def shown(value: Any) -> str:
    """A value as a sentence can carry it: one word as it is, other texts in quotation marks, nothing as `empty`."""
    if value is None or value == "":
        return "empty"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = value if isinstance(value, str) else canonical_json(value)
    if isinstance(value, int | float) or (PLAIN.fullmatch(text) and len(text) <= LONGEST_VALUE):
        return text
    return f"“{_tamed(text, LONGEST_VALUE)}”"


def _tamed(text: str, longest: int) -> str:
    line = " ".join(text.split()).translate(TAMED)
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def changes_in_words(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """E.g. "status active → inactive, score 10 → 20"; at most four, the rest counted."""
    parts = [f"{_field(key)} {shown(before.get(key))} → {shown(value)}" for key, value in after.items()]
    return _listed(parts)


def values_in_words(values: Mapping[str, Any]) -> str:
    """E.g. "region EU, status active"; at most four, the rest counted."""
    return _listed([f"{_field(key)} {shown(value)}" for key, value in values.items()])


def new_values_in_words(values: Mapping[str, Any]) -> str:
    """E.g. "status → inactive", for many records whose old values differ."""
    return _listed([f"{_field(key)} → {shown(value)}" for key, value in values.items()])


def _field(key: str) -> str:
    return _tamed(key.removeprefix("attributes.").replace("_", " "), LONGEST_VALUE)


def _listed(parts: list[str]) -> str:
    more = f" and {len(parts) - MOST_CHANGES} more" if len(parts) > MOST_CHANGES else ""
    return ", ".join(parts[:MOST_CHANGES]) + more


def subject(selection: Selection, preview: Preview) -> str:
    """What a call is about: "record **Acme Corp**", "212 records", or what was asked for if there is no preview."""
    if preview.total == 1:
        return f"record {bold(preview.targets[0].label)}"
    if preview.total:
        return f"{preview.total:,} records{chosen_by(selection)}"
    if selection.record_ids is not None:
        return f"the records with the ids {', '.join(selection.record_ids[:5])}" + (
            f" and {len(selection.record_ids) - 5} more" if len(selection.record_ids) > 5 else ""
        )
    return f"all records{chosen_by(selection)}"


def chosen_by(selection: Selection) -> str:
    """The filters in brackets, with a space before; empty for ids."""
    words = _tamed(selection.filters.in_words(), 200) if selection.filters else ""
    return f" ({words})" if words else ""


def named(preview: Preview, record_id: str) -> str:
    """The name of the only target, or its id if there is no preview."""
    target: Target | None = preview.targets[0] if preview.targets else None
    return bold(target.label if target else record_id)
