"""Conversion of JSON values to the texts of an edit form, and of typed texts back to values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agents.web.cards.form_fields import FormField

OMITTED = object()


class InvalidFieldText(ValueError):
    """A field's text cannot be read as a value of the field's kind."""

    def __init__(self, key: str, detail: str) -> None:
        super().__init__(detail)
        self.key = key
        self.detail = detail


def parse_form(fields: Iterable[FormField], typed: Mapping[str, str]) -> dict[str, Any]:
    """Parse the typed texts into params; an unchanged text keeps the exact current value.

    Raises:
        InvalidFieldText: a text does not fit the kind of its field; `key` names the first such
            field.
    """
    values = ((field.name, _read_field(field, typed)) for field in fields)
    return {name: value for name, value in values if value is not OMITTED}


def format_value(kind: str, value: Any, item_kind: str = "text") -> str:
    """Format a value as the text of an input; empty for None."""
    if value is None or kind == "group":
        return ""
    if kind == "flag":
        return "yes" if value else "no"
    if kind == "list":
        return "\n".join(str(item) for item in value)
    if kind == "pairs":
        return "\n".join(
            f"{name}: {_format_pair_value(member, item_kind)}" for name, member in value.items()
        )
    if kind == "json":
        return json.dumps(value, ensure_ascii=False, indent=2)
    return str(value)


def can_write_as_pairs(value: Any, item_kind: str) -> bool:
    """Return True if the object can be written with one `name: value` per line, and read back
    unchanged."""
    if value is None:
        return True
    if not isinstance(value, dict) or any(not _is_plain_name(name) for name in value):
        return False
    return item_kind == "json" or all(
        isinstance(text, str) and text == " ".join(text.splitlines()) for text in value.values()
    )


def _read_field(field: FormField, typed: Mapping[str, str]) -> Any:
    if field.kind == "group":
        inner = parse_form(field.fields, typed)
        is_omitted = not inner and field.is_optional and field.current != {}
        return _get_empty_value(field) if is_omitted else inner
    text = _normalize_line_breaks(typed.get(field.key, field.value))
    if text == _normalize_line_breaks(field.value):
        return field.current if field.current is not None else _get_empty_value(field)
    if text.strip() == "" and field.is_optional:
        return _get_empty_value(field)
    return _parse_text(field, text)


def _get_empty_value(field: FormField) -> Any:
    return None if field.is_nullable else OMITTED


def _normalize_line_breaks(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _is_plain_name(name: str) -> bool:
    return bool(name) and ":" not in name and name == name.strip() and len(name.splitlines()) == 1


def _format_pair_value(value: Any, item_kind: str) -> str:
    """Format the value of a pair as JSON, except for a text that would be read back unchanged."""
    if isinstance(value, str) and (item_kind == "text" or not _would_be_misread(value)):
        return value
    return json.dumps(value, ensure_ascii=False)


def _would_be_misread(text: str) -> bool:
    if not text or text != text.strip() or len(text.splitlines()) > 1:
        return True
    try:
        _parse_json(text)
    except ValueError:
        return False
    return True


def _parse_json(text: str) -> Any:
    """Parse JSON.

    Raises:
        ValueError: the text is not JSON.
    """
    try:
        return json.loads(text, parse_constant=_reject_constant)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _parse_text(field: FormField, text: str) -> Any:
    if field.kind == "list":
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        return [PARSERS[field.item_kind](field.key, line) for line in lines]
    if field.kind == "pairs":
        return _parse_pairs(field, text)
    return PARSERS[field.kind](field.key, text)


def _parse_pairs(field: FormField, text: str) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for line in filter(None, map(str.strip, text.split("\n"))):
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not colon or not name:
            raise InvalidFieldText(
                field.key, f"{line[:80]!r} is not a pair. Write a name, a colon and a value."
            )
        if name in pairs:
            raise InvalidFieldText(field.key, f"{name[:80]!r} is used twice. Use each name once.")
        pairs[name] = value if field.item_kind == "text" else _parse_loosely(value)
    return pairs


def _parse_loosely(text: str) -> Any:
    """Parse JSON; return any other text unchanged."""
    try:
        return _parse_json(text)
    except ValueError:
        return text


def _parse_whole(key: str, text: str) -> int:
    try:
        return int(text.strip())
    except ValueError as error:
        raise InvalidFieldText(
            key, f"{text.strip()[:80]!r} is not a whole number. Enter a number without decimals."
        ) from error


def _parse_number(key: str, text: str) -> float:
    try:
        number = float(text.strip())
    except ValueError as error:
        raise InvalidFieldText(key, f"{text.strip()[:80]!r} is not a number.") from error
    if not math.isfinite(number):
        raise InvalidFieldText(key, f"{text.strip()[:80]!r} is not a JSON number.")
    return number


def _parse_flag(key: str, text: str) -> bool:
    if text not in ("yes", "no"):
        raise InvalidFieldText(key, f"{text[:80]!r} is not an answer. Choose yes or no.")
    return text == "yes"


def _parse_json_field(key: str, text: str) -> Any:
    try:
        return _parse_json(text)
    except ValueError as error:
        raise InvalidFieldText(key, f"This is not JSON: {error}.") from error


def _keep_text(_key: str, text: str) -> str:
    return text


PARSERS: dict[str, Callable[[str, str], Any]] = {
    "text": _keep_text,
    "lines": _keep_text,
    "choice": _keep_text,
    "whole": _parse_whole,
    "number": _parse_number,
    "flag": _parse_flag,
    "json": _parse_json_field,
}
