"""Sentences about records for cards; hostile values are harmless in them."""

from collections.abc import Mapping
from typing import Any

from tools.contract import Preview, Target
from tools.contract.sentences import format_name, format_value
from tools.office.records.fields import Selection

MAX_CHANGES = 4


def describe_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Describe up to four changes, e.g. "status active → inactive", and count the rest."""
    parts = [
        f"{_format_field(key)} {format_value(before.get(key))} → {format_value(value)}"
        for key, value in after.items()
    ]
    return _join_parts(parts)


def describe_values(values: Mapping[str, Any]) -> str:
    """Describe up to four values, e.g. "region EU, status active", and count the rest."""
    return _join_parts(
        [f"{_format_field(key)} {format_value(value)}" for key, value in values.items()]
    )


def describe_new_values(values: Mapping[str, Any]) -> str:
    """Describe new values, e.g. "status → inactive", for many records whose old values differ."""
    return _join_parts(
        [f"{_format_field(key)} → {format_value(value)}" for key, value in values.items()]
    )


def _format_field(key: str) -> str:
    attribute = key.removeprefix("attributes.")
    return format_value(attribute) if attribute != key else key.replace("_", " ")


def _join_parts(parts: list[str]) -> str:
    more = f" and {len(parts) - MAX_CHANGES} more" if len(parts) > MAX_CHANGES else ""
    return ", ".join(parts[:MAX_CHANGES]) + more


def describe_subject(selection: Selection, preview: Preview) -> str:
    """Describe a call's records: "record **Acme Corp**", "212 records", or else how they were
    selected."""
    if preview.total == 1:
        return f"record {format_name(preview.targets[0].label)}"
    if preview.total:
        return f"{preview.total:,} records{describe_filters(selection)}"
    if selection.record_ids is not None:
        return f"the records with the ids {', '.join(selection.record_ids[:5])}" + (
            f" and {len(selection.record_ids) - 5} more" if len(selection.record_ids) > 5 else ""
        )
    return f"all records{describe_filters(selection)}"


def describe_filters(selection: Selection) -> str:
    """Describe the filters in parentheses, with a leading space; empty if the records are selected
    by ids."""
    words = selection.filters.describe() if selection.filters else ""
    return f" ({words})" if words else ""


def format_target_name(preview: Preview, record_id: str) -> str:
    """Format the name of the only target, or its id if there is no preview."""
    target: Target | None = preview.targets[0] if preview.targets else None
    return format_name(target.label if target else record_id)
