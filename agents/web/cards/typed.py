"""Values of an edit form as text that people type, and typed text read back as JSON values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agents.web.cards.fields import Field

LEFT_OUT = object()


class UnreadableField(ValueError):
    """The text typed into the field with this key is not a value of its type."""

    def __init__(self, key: str, detail: str) -> None:
        super().__init__(detail)
        self.key = key
        self.detail = detail


def read_typed(fields: Iterable[Field], typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the typed params by the fields' keys; an untouched field keeps its exact value.

    Raises:
        UnreadableField: the first field whose text is not of its type.
    """
    values = ((one.name, _value(one, typed)) for one in fields)
    return {name: value for name, value in values if value is not LEFT_OUT}


def format_value(kind: str, value: Any, item: str = "text") -> str:
    """Write a value as the text of an input of this kind; None as an empty text."""
    if value is None or kind == "group":
        return ""
    if kind == "flag":
        return "yes" if value else "no"
    if kind == "list":
        return "\n".join(str(one) for one in value)
    if kind == "pairs":
        return "\n".join(f"{name}: {_in_pair(one, item)}" for name, one in value.items())
    if kind == "json":
        return json.dumps(value, ensure_ascii=False, indent=2)
    return str(value)


def fits_pairs(value: Any, item: str) -> bool:
    """Check if the object can be written as one `name: value` per line and read back unchanged."""
    if value is None:
        return True
    if not isinstance(value, dict) or any(not _is_plain_name(name) for name in value):
        return False
    return item == "json" or all(isinstance(one, str) and one == " ".join(one.splitlines()) for one in value.values())


def _value(one: Field, typed: Mapping[str, str]) -> Any:
    if one.kind == "group":
        inner = read_typed(one.fields, typed)
        is_left = not inner and one.optional and one.present != {}
        return _nothing(one) if is_left else inner
    text = _unix(typed.get(one.key, one.value))
    if text == _unix(one.value):
        return one.present if one.present is not None else _nothing(one)
    if text.strip() == "" and one.optional:
        return _nothing(one)
    return _read(one, text)


def _nothing(one: Field) -> Any:
    return None if one.nullable else LEFT_OUT


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _is_plain_name(name: str) -> bool:
    return bool(name) and ":" not in name and name == name.strip() and len(name.splitlines()) == 1


def _in_pair(value: Any, item: str) -> str:
    """Write a text as it is unless it would be read as something else, and any other value as JSON."""
    if isinstance(value, str) and (item == "text" or not _would_be_misread(value)):
        return value
    return json.dumps(value, ensure_ascii=False)


def _would_be_misread(text: str) -> bool:
    if not text or text != text.strip() or len(text.splitlines()) > 1:
        return True
    try:
        _parse(text)
    except ValueError:
        return False
    return True


def _parse(text: str) -> Any:
    """Parse JSON; raise ValueError if it is none."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _read(one: Field, text: str) -> Any:
    if one.kind == "list":
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        return [READERS[one.item](one.key, line) for line in lines]
    if one.kind == "pairs":
        return _read_pairs(one, text)
    return READERS[one.kind](one.key, text)


def _read_pairs(one: Field, text: str) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for line in filter(None, map(str.strip, text.split("\n"))):
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not colon or not name:
            raise UnreadableField(one.key, f"{line[:80]!r} is not a name, a colon and a value.")
        if name in pairs:
            raise UnreadableField(one.key, f"{name[:80]!r} occurs twice.")
        pairs[name] = value if one.item == "text" else _read_loosely(value)
    return pairs


def _read_loosely(text: str) -> Any:
    """Read JSON, else the text itself."""
    try:
        return _parse(text)
    except ValueError:
        return text


def _read_whole(key: str, text: str) -> int:
    try:
        return int(text.strip())
    except ValueError as error:
        raise UnreadableField(key, f"{text.strip()[:80]!r} is not a whole number.") from error


def _read_number(key: str, text: str) -> float:
    try:
        number = float(text.strip())
    except ValueError as error:
        raise UnreadableField(key, f"{text.strip()[:80]!r} is not a number.") from error
    if not math.isfinite(number):
        raise UnreadableField(key, f"{text.strip()[:80]!r} is not a JSON number.")
    return number


def _read_flag(key: str, text: str) -> bool:
    if text not in ("yes", "no"):
        raise UnreadableField(key, f"{text[:80]!r} is neither yes nor no.")
    return text == "yes"


def _read_json(key: str, text: str) -> Any:
    try:
        return _parse(text)
    except ValueError as error:
        raise UnreadableField(key, f"This is not JSON: {error}.") from error


def _read_text(_key: str, text: str) -> str:
    return text


READERS: dict[str, Callable[[str, str], Any]] = {
    "text": _read_text,
    "lines": _read_text,
    "choice": _read_text,
    "whole": _read_whole,
    "number": _read_number,
    "flag": _read_flag,
    "json": _read_json,
}
