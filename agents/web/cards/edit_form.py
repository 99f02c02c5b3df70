"""The edit form of a card, built from the tool's JSON schema and the current params."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agents.platform.refusals import Invalid
from agents.web.cards.form_fields import FormField, FormInput
from agents.web.cards.form_values import InvalidFieldText, can_write_as_pairs, format_value
from tools.schemas.references import find_target, leave_out_null, list_choices

ID_NAME = re.compile(r"(?:^|_)(?:id|ids|ID|uuid)$|[a-z](?:Id|Ids|ID|IDs)$")
"""Matches names of params that identify something, such as `id`, `record_ids` and `customerId`."""
LONG_TEXT_LENGTH = 80
MAX_DEPTH = 4
MAX_FIELDS = 500
MAX_REFERENCES = 8
"""The maximum number of references to follow, because references can form a cycle."""
SIMPLE_KINDS = {"string": "text", "integer": "whole", "number": "number"}
COMPLAINT = re.compile(
    r"The '(?P<name>[^']*)' parameter is (?:(?P<missing>required)\.|invalid: (?P<detail>.*) \(given: .*\)\.)",
    re.DOTALL,
)
PLAIN_WORDS = (
    (re.compile("^(?:Value error|Assertion failed), "), ""),
    (re.compile("Input should be"), "it must be"),
    (re.compile("(?:String|List) should have"), "it must have"),
    (
        re.compile("String should match pattern .*", re.DOTALL),
        "it does not have the expected format",
    ),
)


@dataclass(frozen=True)
class _SchemaNode:
    """A part of the schema with its path and current value."""

    path: tuple[str, ...]
    schema: Mapping[str, Any]
    is_required: bool
    current: Any


def build_fields(
    schema: Mapping[str, Any], params: Mapping[str, Any], form_input: FormInput | None = None
) -> list[FormField]:
    """Build the form for these params; typed texts take precedence over current values."""
    builder = _FormBuilder(schema, form_input or FormInput())
    return builder.build_fields(_SchemaNode((), schema, is_required=True, current=params))


def mark_first_field(fields: Iterable[FormField], target_ids: Collection[str]) -> list[FormField]:
    """Mark the input in which editing starts: the first input that has a value and does not only
    identify the target."""
    fields = list(fields)
    inputs = [field for field in _list_inputs(fields) if field.is_used]
    first = next((field for field in inputs if not _identifies(field, target_ids)), None)
    return [_mark_if_first(field, first) for field in fields] if first else fields


def _list_inputs(fields: Iterable[FormField]) -> list[FormField]:
    found: list[FormField] = []
    for field in fields:
        found += _list_inputs(field.fields) if field.kind == "group" else [field]
    return found


def _identifies(field: FormField, target_ids: Collection[str]) -> bool:
    """Return True if the field is named like an id, or contains only ids of targets."""
    values = field.current if isinstance(field.current, list) else [field.current]
    return bool(ID_NAME.search(field.name)) or all(str(value) in target_ids for value in values)


def _mark_if_first(field: FormField, first: FormField) -> FormField:
    return replace(
        field,
        is_first=field is first,
        fields=tuple(_mark_if_first(each, first) for each in field.fields),
    )


def list_changed_texts(fields: Iterable[FormField], form_input: FormInput) -> list[tuple[str, str]]:
    """List the changed inputs, each as the param's name and the typed text."""
    found: list[tuple[str, str]] = []
    for field in fields:
        found += list_changed_texts(field.fields, form_input)
        text = form_input.values.get(field.key, field.value).replace("\r\n", "\n")
        if field.kind != "group" and text != field.value.replace("\r\n", "\n"):
            found.append((" · ".join(field.path), text))
    return found


def find_field_key(fields: Iterable[FormField], key: str) -> str:
    """Find the key of the innermost field for a param such as `changes.phone` or `record_ids.3`;
    empty if there is none."""
    for field in fields:
        if key == field.key or key.startswith(f"{field.key}."):
            return find_field_key(field.fields, key) or field.key
    return ""


def find_problems(
    fields: Iterable[FormField], refusal: InvalidFieldText | Invalid
) -> dict[str, str]:
    """Return the refusal's text by the key of the field that it is about; an empty key stands for
    the whole form."""
    if isinstance(refusal, InvalidFieldText):
        return {refusal.key: refusal.detail}
    key = find_field_key(fields, refusal.extra["field"].removeprefix("params."))
    return {key: simplify_complaint(refusal.detail, is_named=not key)}


def simplify_complaint(complaint: str, *, is_named: bool = False) -> str:
    """Reword the validator's complaint about a param in plain words.

    Args:
        is_named: True to begin with the param's name.
    """
    found = COMPLAINT.fullmatch(complaint)
    if found is None:
        return complaint
    words = "this is required" if found["missing"] else found["detail"]
    for technical, plain in PLAIN_WORDS:
        words = technical.sub(plain, words)
    sentence = f"{words[:1].upper()}{words[1:].rstrip('.')}."
    return f"{found['name']}: {sentence}" if is_named else sentence


class _FormBuilder:
    """Builds the fields of one schema, in which every part may refer to itself.

    A few parts can describe millions of fields. So after MAX_FIELDS, objects become JSON texts.
    """

    def __init__(self, root: Mapping[str, Any], form_input: FormInput) -> None:
        self._root = root
        self._form_input = form_input
        self._resolved: dict[tuple[int, int], dict[str, Any]] = {}
        self._left = MAX_FIELDS

    def build_fields(self, node: _SchemaNode) -> list[FormField]:
        required = node.schema.get("required", [])
        current = node.current if isinstance(node.current, Mapping) else {}
        properties = node.schema.get("properties", {})
        self._left -= len(properties)
        return [
            self._build_field(
                _SchemaNode(
                    (*node.path, name), self._resolve(part), name in required, current.get(name)
                )
            )
            for name, part in properties.items()
        ]

    def _build_field(self, node: _SchemaNode) -> FormField:
        core, is_nullable = _remove_null(node.schema)
        kind = _choose_kind(core, node)
        kind = "json" if kind == "group" and len(core["properties"]) > self._left else kind
        item_kind = _choose_item_kind(core, kind)
        key = ".".join(node.path)
        return FormField(
            path=node.path,
            kind=kind,
            current=node.current,
            value=self._form_input.values.get(key, format_value(kind, node.current, item_kind)),
            description=str(node.schema.get("description", "")),
            is_optional=not node.is_required,
            is_nullable=is_nullable,
            choices=_list_choices(core, kind),
            item_kind=item_kind,
            limits={name: core[name] for name in ("minimum", "maximum") if name in core},
            problem=self._form_input.problems.get(key, ""),
            fields=tuple(self.build_fields(replace(node, schema=core))) if kind == "group" else (),
        )

    def _resolve(self, part: Any, depth: int = 0) -> dict[str, Any]:
        """Resolve the references at the top of a part of the schema, which decide the
        field's kind."""
        if not isinstance(part, dict) or depth > MAX_REFERENCES:
            return {}
        if (id(part), depth) not in self._resolved:
            self._resolved[id(part), depth] = self._resolve_new(part, depth)
        return self._resolved[id(part), depth]

    def _resolve_new(self, part: dict[str, Any], depth: int) -> dict[str, Any]:
        if "$ref" in part:
            target = find_target(str(part["$ref"]), self._root)
            return {
                **self._resolve(target, depth + 1),
                **{key: value for key, value in part.items() if key != "$ref"},
            }
        found = dict(part)
        for key in ("anyOf", "oneOf"):
            if key in found:
                found[key] = [self._resolve(option, depth + 1) for option in found[key]]
        for key in ("items", "additionalProperties"):
            if isinstance(found.get(key), dict):
                found[key] = self._resolve(found[key], depth + 1)
        return found


def _choose_kind(schema: Mapping[str, Any], node: _SchemaNode) -> str:
    choices, type_, current = schema.get("enum"), schema.get("type"), node.current
    if choices and all(isinstance(choice, str) for choice in choices if choice is not None):
        return "choice"
    if type_ == "string":
        is_long = isinstance(current, str) and (
            len(current) > LONG_TEXT_LENGTH or "\n" in current or "\r" in current
        )
        return "lines" if is_long else "text"
    if type_ in SIMPLE_KINDS:
        return SIMPLE_KINDS[type_]
    if type_ == "boolean":
        return "flag"
    if type_ == "object":
        return _choose_object_kind(schema, node)
    is_simple_list = type_ == "array" and schema.get("items", {}).get("type") in SIMPLE_KINDS
    has_lines = isinstance(current, list) and any("\n" in str(item) for item in current)
    return "list" if is_simple_list and not has_lines else "json"


def _choose_object_kind(schema: Mapping[str, Any], node: _SchemaNode) -> str:
    known = schema.get("properties")
    if known:
        current = {} if node.current is None else node.current
        has_only_known_fields = isinstance(current, dict) and current.keys() <= known.keys()
        return "group" if has_only_known_fields and len(node.path) < MAX_DEPTH else "json"
    return (
        "pairs" if can_write_as_pairs(node.current, _choose_item_kind(schema, "pairs")) else "json"
    )


def _choose_item_kind(schema: Mapping[str, Any], kind: str) -> str:
    if kind == "pairs":
        values = schema.get("additionalProperties")
        return "text" if isinstance(values, Mapping) and values.get("type") == "string" else "json"
    return (
        SIMPLE_KINDS.get(str(schema.get("items", {}).get("type", "")), "text")
        if kind == "list"
        else "text"
    )


def _list_choices(schema: Mapping[str, Any], kind: str) -> tuple[str, ...]:
    if kind == "flag":
        only = schema.get("const")
        return ("yes", "no") if only is None else ("yes",) if only else ("no",)
    return (
        tuple(str(choice) for choice in schema.get("enum", ()) if choice is not None)
        if kind == "choice"
        else ()
    )


def _remove_null(schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """Return the schema without the alternative null, and True if the schema had this
    alternative."""
    type_ = schema.get("type")
    if isinstance(type_, list):
        named = [name for name in type_ if name != "null"]
        return {**schema, "type": named[0] if len(named) == 1 else ""}, "null" in type_
    options = list_choices(schema)
    if not options:
        return schema, False
    named_options = leave_out_null(options)
    is_nullable = len(named_options) < len(options)
    return (named_options[0] if len(named_options) == 1 else {}), is_nullable
