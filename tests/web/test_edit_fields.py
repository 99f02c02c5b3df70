"""A card's edit form has an input of the right type for every param, and parses the typed texts."""

from __future__ import annotations

import time
from typing import Any

import pytest

from agents.web.cards.edit_form import (
    MAX_FIELDS,
    build_fields,
    find_field_key,
    mark_first_field,
    simplify_complaint,
)
from agents.web.cards.form_fields import FormField, FormInput
from agents.web.cards.form_values import InvalidFieldText, parse_form

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
        "facts": {"type": "object"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "steps": {"type": "array", "items": {"type": "object"}},
        "changes": {"$ref": "#/$defs/Changes"},
        "filters": {"anyOf": [{"$ref": "#/$defs/Changes"}, {"type": "null"}]},
    },
    "$defs": {
        "Status": {"type": "string", "enum": ["active", "inactive"]},
        "Changes": {
            "type": "object",
            "properties": {
                "phone": {"type": "string"},
                "score": {"type": "integer"},
                "status": {"$ref": "#/$defs/Status"},
                "archived": {"type": "boolean", "const": False},
            },
        },
    },
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
    "facts": {
        "employees": 120,
        "founded": "1999",
        "open": True,
        "tags": ["a", "b"],
        "motto": "Ever on",
    },
    "labels": {"size": "120"},
    "steps": [{"do": "it"}],
    "changes": {"phone": "+1", "status": "active"},
    "filters": None,
}


def list_inputs(fields: list[FormField] | tuple[FormField, ...]) -> list[FormField]:
    """List the inputs, including those of groups."""
    return [
        one
        for field in fields
        for one in ([field] if field.kind != "group" else list_inputs(field.fields))
    ]


def read(params: dict[str, Any] = PARAMS, **changed: str) -> dict[str, Any]:
    """Parse the form after typing these texts. The argument `changes__phone` stands for the input
    `changes.phone`."""
    fields = build_fields(SCHEMA, params)
    typed = {field.key: field.value for field in list_inputs(fields)}
    return parse_form(
        fields, typed | {key.replace("__", "."): text for key, text in changed.items()}
    )


def test_each_type_has_its_input() -> None:
    kinds = {field.name: field.kind for field in build_fields(SCHEMA, PARAMS)}
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
        "facts": "pairs",
        "labels": "pairs",
        "steps": "json",
        "changes": "group",
        "filters": "group",
    }


def test_a_nested_object_has_an_input_for_each_of_its_fields() -> None:
    (changes,) = (field for field in build_fields(SCHEMA, PARAMS) if field.name == "changes")
    assert [(one.key, one.kind) for one in changes.fields] == [
        ("changes.phone", "text"),
        ("changes.score", "whole"),
        ("changes.status", "choice"),
        ("changes.archived", "flag"),
    ]
    assert [one.name for one in changes.used_fields] == ["phone", "status"]
    assert [one.name for one in changes.unused_fields] == ["score", "archived"]


@pytest.mark.parametrize(
    ("params", "targets", "first"),
    [
        ({"record_id": "7", "changes": {"status": "active"}}, {"7"}, "changes.status"),
        ({"customerId": "a", "names": ["7", "8"], "phone": "+1"}, {"7", "8"}, "phone"),
        ({"names": ["7", "9"], "phone": "+1"}, {"7", "8"}, "names"),
        ({"id": "7"}, {"7"}, None),
    ],
)
def test_editing_starts_in_the_first_field_that_is_more_than_the_id_of_the_target(
    params: dict[str, Any], targets: set[str], first: str | None
) -> None:
    kinds: dict[type, Any] = {
        list: {"type": "array", "items": {"type": "string"}},
        str: {"type": "string"},
    }
    properties = {
        name: kinds.get(type(value), SCHEMA["$defs"]["Changes"]) for name, value in params.items()
    }
    marked = mark_first_field(
        build_fields({"type": "object", "properties": properties}, params), targets
    )
    assert [one.key for one in list_inputs(marked) if one.is_first] == ([first] if first else [])


def test_a_form_sent_without_edits_changes_nothing() -> None:
    assert read() == PARAMS
    odd = {
        **PARAMS,
        "name": "a\r\nb\rc",
        "changes": {"phone": ""},
        "filters": {},
        "status": "unheard of",
    }
    assert read(odd) == odd


def test_typed_texts_become_values_of_the_right_type() -> None:
    params = read(
        count="7",
        rate="1.25",
        urgent="yes",
        status="inactive",
        ids="5\n\n6",
        numbers="9",
        steps="[1]",
        notes="n",
    )
    assert params["count"] == 7
    assert params["rate"] == 1.25
    assert params["urgent"] is True
    assert (params["status"], params["notes"]) == ("inactive", "n")
    assert (params["ids"], params["numbers"], params["steps"]) == (["5", "6"], [9], [1])


def test_fields_of_a_nested_object_can_be_changed_added_and_removed() -> None:
    assert read(changes__phone="+2", changes__score="7")["changes"] == {
        "phone": "+2",
        "score": 7,
        "status": "active",
    }
    assert read(changes__phone="")["changes"] == {"status": "active"}
    assert read(filters__status="inactive")["filters"] == {"status": "inactive"}
    assert read({**PARAMS, "filters": {"phone": "+1"}}, filters__phone="")["filters"] is None


def test_an_object_with_free_names_is_edited_as_one_name_and_value_per_line() -> None:
    (facts,) = (field for field in build_fields(SCHEMA, PARAMS) if field.name == "facts")
    assert facts.value.split("\n") == [
        "employees: 120",
        'founded: "1999"',
        "open: true",
        'tags: ["a", "b"]',
        "motto: Ever on",
    ]
    assert read(facts="employees: 121\nmotto: NaN: never\n")["facts"] == {
        "employees": 121,
        "motto": "NaN: never",
    }
    assert read(labels="size: 121")["labels"] == {"size": "121"}


@pytest.mark.parametrize("facts", [{"a:b": 1}, {"": 1}, {" a": 1}, {"a\nb": 1}])
def test_objects_with_names_that_cannot_be_written_as_name_value_lines_are_edited_as_json(
    facts: dict[str, Any],
) -> None:
    (field,) = (
        field for field in build_fields(SCHEMA, {**PARAMS, "facts": facts}) if field.name == "facts"
    )
    assert field.kind == "json"


@pytest.mark.parametrize(
    "value", ["", " x ", "a\nb", "null", "1e5", '"x"', "\u2028", "[" * 5000, "NaN"]
)
def test_editing_one_value_of_an_object_with_free_names_keeps_the_other_values(value: str) -> None:
    params = {**PARAMS, "facts": {"odd": value, "n": 1}}
    (field,) = (field for field in build_fields(SCHEMA, params) if field.name == "facts")
    assert read(params, facts=field.value.replace("n: 1", "n: 2"))["facts"] == {
        "odd": value,
        "n": 2,
    }


def test_an_object_keeps_fields_that_are_missing_in_its_schema() -> None:
    params = {**PARAMS, "changes": {"phone": "+1", "unheard": "of"}}
    (field,) = (field for field in build_fields(SCHEMA, params) if field.name == "changes")
    assert field.kind == "json"
    assert read(params) == params


def test_an_emptied_optional_field_is_null_or_omitted() -> None:
    params = read({**PARAMS, "notes": "old"}, notes="", rate="")
    assert params["notes"] is None
    assert "rate" not in params


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("count", "three"),
        ("rate", "nan"),
        ("urgent", "maybe"),
        ("numbers", "1\nx"),
        ("steps", "{"),
        ("steps", "[" * 100_000),
        ("facts", "no colon"),
        ("facts", "a: 1\na: 2"),
        ("changes.score", "many"),
    ],
)
def test_an_error_about_input_of_the_wrong_type_names_its_field(key: str, text: str) -> None:
    with pytest.raises(InvalidFieldText) as caught:
        read(**dict[str, Any]({key.replace(".", "__"): text}))
    assert caught.value.key == key


def test_an_error_is_shown_beside_the_innermost_input() -> None:
    fields = build_fields(SCHEMA, PARAMS)
    assert find_field_key(fields, "changes.phone") == "changes.phone"
    assert find_field_key(fields, "changes.unheard") == "changes"
    assert find_field_key(fields, "ids.3") == "ids"
    assert find_field_key(fields, "params") == ""


@pytest.mark.parametrize(
    ("complaint", "words"),
    [
        ("The 'count' parameter is required.", "This is required."),
        (
            "The 'a.b' parameter is invalid: Input should be 'x' or 'y' (given: 'z').",
            "It must be 'x' or 'y'.",
        ),
        ("The 'name' parameter is invalid: Value error, it is empty (given: '').", "It is empty."),
        (
            "The 'code' parameter is invalid: String should match pattern '^[A-Z]{2}$' (given: 'x').",
            "It does not have the expected format.",
        ),
        ("There is no record 99.", "There is no record 99."),
    ],
)
def test_errors_are_reworded_in_plain_language(complaint: str, words: str) -> None:
    assert simplify_complaint(complaint) == words


def test_typed_texts_are_kept_with_their_errors() -> None:
    typed = FormInput({"changes.score": "many"}, {"changes.score": "That is no number."})
    (changes,) = (field for field in build_fields(SCHEMA, PARAMS, typed) if field.name == "changes")
    (score,) = (field for field in changes.used_fields if field.name == "score")
    assert (score.value, score.problem) == ("many", "That is no number.")


def count_fields(fields: tuple[FormField, ...]) -> int:
    return sum(1 + count_fields(field.fields) for field in fields)


def test_a_small_schema_that_describes_millions_of_fields_is_partly_edited_as_json() -> None:
    node = {
        "type": "object",
        "properties": {f"p{number}": {"$ref": "#/$defs/N"} for number in range(15)},
    }
    fields = build_fields({"properties": {"a": {"$ref": "#/$defs/N"}}, "$defs": {"N": node}}, {})
    assert fields[0].kind == "group"
    assert fields[0].fields[-1].kind == "json"
    assert 400 < count_fields(tuple(fields)) <= MAX_FIELDS


def test_a_schema_that_refers_to_itself_many_times_is_resolved_once() -> None:
    tree = {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/Tree"}] * 200}}
    began = time.process_time()
    (field,) = build_fields(
        {"properties": {"a": {"$ref": "#/$defs/Tree"}}, "$defs": {"Tree": tree}}, {}
    )
    assert field.kind == "json"
    assert time.process_time() - began < 1
