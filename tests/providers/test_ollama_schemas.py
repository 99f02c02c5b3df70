"""Schema details that Ollama's server would drop are added to the descriptions, and all references
are replaced."""

import json
from typing import Any

import pytest

from agents.employees.toolboxes import get_installed_toolbox
from tests.ollama_server import OllamaServer
from tests.providers.conftest import Asking, definition
from tools.schemas.ollama import MAX_REFERENCES, simplify_definition, simplify_schema

KEPT_BY_OLLAMA = {"type", "description", "enum", "items", "properties", "required", "anyOf"}


def of_field(field: dict[str, Any], **more: Any) -> Any:
    """Return the plain form of a schema's only field."""
    return simplify_schema({"type": "object", "properties": {"x": field}, **more})["properties"][
        "x"
    ]


def keywords_in(schema: Any) -> set[str]:
    if not isinstance(schema, dict):
        return set()
    below = [*schema.get("properties", {}).values(), *schema.get("anyOf", ()), schema.get("items")]
    return set(schema).union(*map(keywords_in, below))


@pytest.mark.parametrize(
    ("field", "told"),
    [
        (
            {
                "type": "integer",
                "description": "How many",
                "minimum": 1,
                "maximum": 50,
                "default": 20,
            },
            {"type": "integer", "description": "How many (minimum 1; maximum 50; default 20)"},
        ),
        (
            {"type": "string", "pattern": "^[a-zä]+$", "minLength": 2, "title": "X"},
            {"type": "string", "description": '(pattern "^[a-zä]+$"; minLength 2)'},
        ),
        (
            {"type": "string", "format": "date"},
            {"type": "string", "description": '(format "date")'},
        ),
        (
            {"type": "boolean", "default": False},
            {"type": "boolean", "description": "(default false)"},
        ),
        ({"const": "a"}, {"enum": ["a"]}),
        ({"type": "string", "enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        (
            {"type": "array", "items": {"type": "string", "maxLength": 9}, "maxItems": 3},
            {
                "type": "array",
                "items": {"type": "string", "description": "(maxLength 9)"},
                "description": "(maxItems 3)",
            },
        ),
        (
            {"oneOf": [{"type": "integer", "minimum": 0}, {"type": "null"}], "default": None},
            {
                "anyOf": [{"type": "integer", "description": "(minimum 0)"}, {"type": "null"}],
                "description": "(default null)",
            },
        ),
        (
            {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
            {
                "type": "object",
                "description": '(each value {"type": "integer", "description": "(minimum 0)"})',
            },
        ),
        ({"type": "object", "additionalProperties": False}, {"type": "object"}),
    ],
)
def test_schema_rules_are_repeated_in_the_description(
    field: dict[str, Any], told: dict[str, Any]
) -> None:
    assert of_field(field) == told


def test_a_field_named_like_a_keyword_is_treated_as_a_field() -> None:
    schema = simplify_schema(
        {"properties": {"title": {"type": "string"}, "default": {"type": "string"}}}
    )
    assert schema == {
        "type": "object",
        "properties": {"title": {"type": "string"}, "default": {"type": "string"}},
    }


def test_references_are_expanded_in_place() -> None:
    definitions = {
        "Size": {"type": "integer", "maximum": 9, "description": "A size"},
        "a/b": {"type": "string"},
    }
    assert of_field({"$ref": "#/$defs/Size"}, **{"$defs": definitions}) == {
        "type": "integer",
        "description": "A size (maximum 9)",
    }
    own = of_field({"$ref": "#/$defs/Size", "description": "Mine"}, **{"$defs": definitions})
    assert own["description"] == "Mine (maximum 9)"
    assert of_field({"$ref": "#/$defs/a~1b"}, **{"$defs": definitions}) == {"type": "string"}
    assert of_field({"$ref": "#/$defs/gone"}, **{"$defs": definitions}) == {}


def test_parts_of_one_schema_are_merged() -> None:
    first = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    second = {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]}
    joined = of_field(
        {"allOf": [{"$ref": "#/$defs/First"}, second, True]}, **{"$defs": {"First": first}}
    )
    assert joined["properties"] == {"a": {"type": "string"}, "b": {"type": "integer"}}
    assert sorted(joined["required"]) == ["a", "b"]


@pytest.mark.parametrize(
    "node",
    [
        {"type": "object", "properties": {"child": {"$ref": "#/$defs/Node"}}},
        {"type": "object", "properties": {"child": {"allOf": [{"$ref": "#/$defs/Node"}]}}},
        {"type": "array", "items": {"$ref": "#/$defs/Node"}},
        {"$ref": "#/$defs/Node"},
        {"properties": {"all": {"$ref": "#"}}},
    ],
)
def test_a_recursive_schema_is_cut_off(node: dict[str, Any]) -> None:
    plain = simplify_schema(
        {"properties": {"x": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}
    )
    assert "$ref" not in json.dumps(plain)
    assert len(json.dumps(plain)) < 2_000


def test_references_that_double_at_every_step_stay_small() -> None:
    steps = {
        f"S{n}": {"properties": {side: {"$ref": f"#/$defs/S{n + 1}"} for side in ("left", "right")}}
        for n in range(40)
    }
    plain = simplify_schema({"properties": {"x": {"$ref": "#/$defs/S0"}}, "$defs": steps})
    assert json.dumps(plain).count("left") == 2**MAX_REFERENCES - 1


def test_every_installed_tool_is_converted_without_losing_fields() -> None:
    for tool in get_installed_toolbox().tools():
        before = tool.definition["function"]["parameters"]
        after = simplify_definition(tool.definition)["function"]["parameters"]
        assert set(after["properties"]) == set(before["properties"]), tool.name
        assert after.get("required") == before.get("required"), tool.name
        assert keywords_in(after) <= KEPT_BY_OLLAMA, tool.name


def test_the_given_definitions_stay_unchanged(ollama: OllamaServer, ask_ollama: Asking) -> None:
    tool = definition("data.searchRecords")
    tool["function"]["parameters"] = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}},
    }
    before = json.dumps(tool)
    ask_ollama(tools=[tool])
    assert json.dumps(tool) == before
    told = ollama.requests[0]["tools"][0]["function"]["parameters"]["properties"]
    assert told == {"n": {"type": "integer", "description": "(minimum 1)"}}
