"""The typed edit form of a card: fields from the tool's JSON schema, and what was typed back into JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

PREFIX = "param."
LONG_TEXT = 80
SIMPLE = {"string": "text", "integer": "whole", "number": "number"}


@dataclass(frozen=True)
class Field:
    """One input.

    Attributes:
        kind: text, lines (long text), whole, number, flag, choice, list (one value per line) or json.
        value: what stands in the input, as text; `yes` and `no` for a flag.
        present: the value as it is now.
        optional: the input may be left empty: null where the schema allows it, else the tool's default.
        item: the kind of a list's values.
    """

    name: str
    kind: str
    present: Any
    value: str
    description: str = ""
    optional: bool = False
    nullable: bool = False
    choices: tuple[str, ...] = ()
    item: str = "text"
    limits: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""

    @property
    def input_name(self) -> str:
        return PREFIX + self.name


class Unreadable(ValueError):
    """What was typed into one field is not a value of its type."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(detail)
        self.name = name
        self.detail = detail


def fields_of(
    schema: Mapping[str, Any],
    params: Mapping[str, Any],
    typed: Mapping[str, str] | None = None,
    problems: Mapping[str, str] | None = None,
) -> list[Field]:
    """The form for these params; what a person has typed already goes before the present values."""
    definitions = schema.get("$defs", {})
    required = schema.get("required", [])
    return [
        _field(
            _Slot(name, _resolved(part, definitions), name in required, params.get(name)),
            (typed or {}).get(name),
            (problems or {}).get(name, ""),
        )
        for name, part in schema.get("properties", {}).items()
    ]


def read_typed(fields: list[Field], typed: Mapping[str, str]) -> dict[str, Any]:
    """The params that were typed; an untouched field keeps its value exactly.

    Raises:
        Unreadable: the first field whose text is not of its type.
    """
    params: dict[str, Any] = {}
    for one in fields:
        text = typed.get(one.name, "").replace("\r\n", "\n")
        if text == one.value.replace("\r\n", "\n"):
            if one.present is not None or one.nullable:
                params[one.name] = one.present
        elif text.strip() == "" and one.optional:
            if one.nullable:
                params[one.name] = None
        else:
            params[one.name] = _read(one, text)
    return params


@dataclass(frozen=True)
class _Slot:
    name: str
    schema: Mapping[str, Any]
    required: bool
    present: Any


def _field(slot: _Slot, typed: str | None, problem: str) -> Field:
    core, nullable = _without_null(slot.schema)
    kind = _kind(core, slot.present)
    item = SIMPLE.get(str(core.get("items", {}).get("type", "")), "text") if kind == "list" else "text"
    return Field(
        name=slot.name,
        kind=kind,
        present=slot.present,
        value=_as_typed(kind, slot.present) if typed is None else typed,
        description=str(slot.schema.get("description", "")),
        optional=not slot.required,
        nullable=nullable,
        choices=tuple(str(choice) for choice in core.get("enum", ()) if choice is not None),
        item=item,
        limits={key: core[key] for key in ("minimum", "maximum", "maxLength") if key in core},
        problem=problem,
    )


def _kind(schema: Mapping[str, Any], present: Any) -> str:
    choices = schema.get("enum")
    if choices and all(isinstance(choice, str) for choice in choices if choice is not None):
        return "choice"
    type_ = schema.get("type")
    if type_ == "string":
        return "lines" if isinstance(present, str) and (len(present) > LONG_TEXT or "\n" in present) else "text"
    if type_ in SIMPLE:
        return SIMPLE[type_]
    if type_ == "boolean":
        return "flag"
    is_simple_list = type_ == "array" and schema.get("items", {}).get("type") in SIMPLE
    has_lines = isinstance(present, list) and any("\n" in str(item) for item in present)
    return "list" if is_simple_list and not has_lines else "json"


def _resolved(part: Any, definitions: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """The schema with its references followed at the top, where the kind of input is decided."""
    if not isinstance(part, dict) or depth > 8:
        return {}
    if "$ref" in part:
        name = str(part["$ref"]).rpartition("/")[2]
        rest = {key: value for key, value in part.items() if key != "$ref"}
        return {**_resolved(definitions.get(name), definitions, depth + 1), **rest}
    found = dict(part)
    for key in ("anyOf", "oneOf"):
        if key in found:
            found[key] = [_resolved(option, definitions, depth + 1) for option in found[key]]
    if "items" in found:
        found["items"] = _resolved(found["items"], definitions, depth + 1)
    return found


def _without_null(schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    type_ = schema.get("type")
    if isinstance(type_, list):
        named = [name for name in type_ if name != "null"]
        return {**schema, "type": named[0] if len(named) == 1 else ""}, "null" in type_
    options = schema.get("anyOf") or schema.get("oneOf")
    if not options:
        return schema, False
    named_options = [option for option in options if option.get("type") != "null"]
    nullable = len(named_options) < len(options)
    return (named_options[0] if len(named_options) == 1 else {}), nullable


def _as_typed(kind: str, value: Any) -> str:
    if value is None:
        return ""
    if kind == "flag":
        return "yes" if value else "no"
    if kind == "list":
        return "\n".join(str(item) for item in value)
    if kind == "json":
        return json.dumps(value, ensure_ascii=False, indent=2)
    return str(value)


def _read(one: Field, text: str) -> Any:
    if one.kind == "list":
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        return [READERS[one.item](one.name, line) for line in lines]
    return READERS[one.kind](one.name, text)


def _read_whole(name: str, text: str) -> int:
    try:
        return int(text.strip())
    except ValueError as error:
        raise Unreadable(name, f"{text.strip()!r} is not a whole number.") from error


def _read_number(name: str, text: str) -> float:
    try:
        number = float(text.strip())
    except ValueError as error:
        raise Unreadable(name, f"{text.strip()!r} is not a number.") from error
    if not math.isfinite(number):
        raise Unreadable(name, f"{text.strip()!r} is not a number that JSON knows.")
    return number


def _read_flag(name: str, text: str) -> bool:
    if text not in ("yes", "no"):
        raise Unreadable(name, f"{text!r} is neither yes nor no.")
    return text == "yes"


def _read_json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise Unreadable(name, f"This is not JSON: {error}.") from error


def _read_text(_name: str, text: str) -> str:
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
