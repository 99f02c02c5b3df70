"""The inputs of a call in words: labels from the tool's schema, and the names of records beside
their ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.platform.row_ids import parse_row_id_or_none
from agents.platform.value_text import format_json_value
from agents.runs.models import ToolCall
from agents.web.cards.cards import find_call_tool
from agents.web.panel.json_html import render_cell
from agents.web.text.safe_text import quote_outside, render_chip, render_text
from tools.contract import Tool
from tools.registries.records import RECORD_STORE
from tools.schemas.param_paths import find_title

RECORD_PARAMS = ("record_id", "record_ids")
"""The params of built-in tools that hold ids of records; an external tool may use such a name for
anything."""
MAX_NAMES = 500
MAX_BRIEF_NAMES = 3
MAX_TABLE_NAMES = 50
MAX_BRIEF_LENGTH = 120

RecordNames = Mapping[str, str]


def load_record_names(calls: Iterable[ToolCall]) -> RecordNames:
    """Load the names of the records that these calls of one organization name by id, with at most
    one query."""
    texts, organization_id = list[str](), 0
    for call in calls:
        for params in (call.params, call.model_params or {}):
            texts += _list_record_ids(params, find_call_tool(call))
        organization_id = call.organization_id
    return load_names(organization_id, texts)


def load_names(organization_id: int, texts: Iterable[str]) -> RecordNames:
    """Load the names of an organization's records by their ids, with at most one query; other texts
    are skipped."""
    ids = {pk for text in texts if (pk := parse_row_id_or_none(text))}
    if not ids:
        return {}
    rows = RECORD_STORE.get().get_records(organization_id).filter(pk__in=sorted(ids)[:MAX_NAMES])
    return {str(pk): name for pk, name in rows.values_list("pk", "name")}


def render_brief(params: dict[str, Any], tool: Tool | None, names: RecordNames) -> SafeString:
    """Render the inputs in one short line, without empty inputs: `“Acme Corp” #42 · Changes:
    status: inactive`."""
    pieces, left = [], MAX_BRIEF_LENGTH
    for name, value in _sort_by_schema(params, tool):
        if value in (None, "", [], {}):
            continue
        if left <= 0:
            pieces.append(SafeString("…"))
            break
        if name in RECORD_PARAMS and (ids := _list_record_ids({name: value}, tool)):
            piece, length = (
                _render_records(ids, names, MAX_BRIEF_NAMES),
                20 * min(len(ids), MAX_BRIEF_NAMES),
            )
        else:
            text = f"{find_label(name, tool)}: {_format_brief(value)}"
            length = len(text)
            piece = render_text(text if length <= left else f"{text[: left - 1]}…", keep="")
        left -= length
        pieces.append(piece)
    return SafeString(" · ".join(pieces))


def _sort_by_schema(params: dict[str, Any], tool: Tool | None) -> list[tuple[str, Any]]:
    """Sort the inputs as the tool's schema lists them, because PostgreSQL does not keep the order
    of stored names."""
    places = (
        {name: place for place, name in enumerate(tool.schema.get("properties", {}))}
        if tool
        else {}
    )
    return sorted(params.items(), key=lambda item: places.get(item[0], len(places)))


def render_inputs(params: dict[str, Any], tool: Tool | None, names: RecordNames) -> SafeString:
    """Render the inputs as a table with a row for each input; the names of fields are shown on
    hover."""
    if not params:
        return SafeString("<p>none</p>")
    rows = []
    for name, value in _sort_by_schema(params, tool):
        ids = _list_record_ids({name: value}, tool)
        cell = (
            _render_records(ids, names, MAX_TABLE_NAMES) if ids else SafeString(render_cell(value))
        )
        label = render_text(find_label(name, tool), keep="")
        title = quote_outside(name)
        rows.append(
            format_html(
                '<tr><th scope="row" title="{}">{}</th><td>{}</td></tr>', title, label, cell
            )
        )
    table = "".join(rows)
    return SafeString(
        f'<div class="scroll"><table class="params"><tbody>{table}</tbody></table></div>'
    )


def find_label(name: str, tool: Tool | None) -> str:
    """Find the label of a param: its title in the tool's schema, else its name in words: `Record
    id`."""
    part = tool.schema.get("properties", {}).get(name) if tool else None
    title = part.get("title") if isinstance(part, dict) else None
    if isinstance(title, str) and title.strip():
        return title[:60]
    words = name.replace("_", " ").strip() or name
    return words[:1].upper() + words[1:]


def label_path(path: str, tool: Tool | None = None) -> str:
    """Return the label of a param at any depth, like `find_label`: `Changes · Phone`."""
    parts = path.split(".")
    titles = [
        find_title(tool.schema, ".".join(parts[: number + 1])) if tool else ""
        for number in range(len(parts))
    ]
    return " · ".join(
        title[:60] or find_label(part, None) for title, part in zip(titles, parts, strict=True)
    )


def _list_record_ids(params: dict[str, Any], tool: Tool | None) -> list[str]:
    if tool is None or tool.is_from_outside:
        return []
    values = [params[name] for name in RECORD_PARAMS if name in params]
    flat = [each for value in values for each in (value if isinstance(value, list) else [value])]
    return [each for each in flat if isinstance(each, str)]


def _render_records(ids: list[str], names: RecordNames, most: int) -> SafeString:
    """Render records as names with ids; a record that was deleted or belongs to another
    organization is shown by its id only."""
    shown = [
        render_chip(names[pk], pk) if pk in names else SafeString(f"#{render_text(pk, keep='')}")
        for pk in ids[:most]
    ]
    more = f" and {len(ids) - most:,} more" if len(ids) > most else ""
    return SafeString(", ".join(shown) + more)


def _format_brief(value: Any) -> str:
    """Format a value on one line; an object becomes its fields with their names."""
    if isinstance(value, dict) and not any(
        isinstance(each, (dict, list)) for each in value.values()
    ):
        value = ", ".join(f"{name}: {format_json_value(each)}" for name, each in value.items())
    return " ".join(format_json_value(value).split())
