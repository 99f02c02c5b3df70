"""The edit form of a card shows every param by its type, and reads back what was typed."""

from __future__ import annotations

from typing import Any

import pytest

from agents.desk.fields import Unreadable, fields_of, read_typed

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["name", "count"],
    "properties": {
        "name": {"type": "string"},
        "notes": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "count": {"type": "integer", "minimum": 1},
        "rate": {"type": "number"},
        "urgent": {"type": "boolean"},
        "status": {"$ref": "#/$defs/Status"},
        "maybe": {"anyOf": [{"$ref": "#/$defs/Status"}, {"type": "null"}]},
        "ids": {"type": "array", "items": {"type": "string"}},
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "changes": {"type": "object"},
    },
    "$defs": {"Status": {"type": "string", "enum": ["active", "inactive"]}},
}
PARAMS: dict[str, Any] = {
    "name": " Acme\nCorp ",
    "notes": None,
    "count": 3,
    "rate": 0.5,
    "urgent": False,
    "status": "active",
    "maybe": None,
    "ids": ["1", "2"],
    "numbers": [1, 2],
    "changes": {"phone": "+1"},
}


def typed_values(**changed: str) -> dict[str, str]:
    return {field.name: field.value for field in fields_of(SCHEMA, PARAMS)} | changed


def read(**changed: str) -> dict[str, Any]:
    return read_typed(fields_of(SCHEMA, PARAMS), typed_values(**changed))


def test_each_type_has_its_input() -> None:
    kinds = {field.name: field.kind for field in fields_of(SCHEMA, PARAMS)}
    assert kinds == {
        "name": "lines",
        "notes": "text",
        "count": "whole",
        "rate": "number",
        "urgent": "flag",
        "status": "choice",
        "maybe": "choice",
        "ids": "list",
        "numbers": "list",
        "changes": "json",
    }


def test_an_untouched_form_changes_nothing() -> None:
    assert read() == PARAMS


def test_what_was_typed_gets_its_type() -> None:
    params = read(
        count="7",
        rate="1.25",
        urgent="yes",
        status="inactive",
        ids="5\n\n6",
        numbers="9",
        changes='{"a": [1]}',
        notes="n",
    )
    assert params["count"] == 7
    assert params["rate"] == 1.25
    assert params["urgent"] is True
    assert (params["status"], params["notes"]) == ("inactive", "n")
    assert (params["ids"], params["numbers"], params["changes"]) == (["5", "6"], [9], {"a": [1]})


def test_an_emptied_optional_field_is_null_or_left_out() -> None:
    fields = fields_of(SCHEMA, {**PARAMS, "notes": "old"})
    typed = {field.name: field.value for field in fields} | {"notes": "", "rate": ""}
    params = read_typed(fields, typed)
    assert params["notes"] is None
    assert "rate" not in params


@pytest.mark.parametrize(
    ("name", "text"),
    [("count", "three"), ("rate", "nan"), ("urgent", "maybe"), ("numbers", "1\nx"), ("changes", "{")],
)
def test_what_is_not_of_its_type_names_the_field(name: str, text: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read(**{name: text})
    assert caught.value.name == name
