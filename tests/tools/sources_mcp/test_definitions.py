"""A server's definitions become legal tools, or are left out with a reason."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.features import feature
from tools.contract import Level, ToolError
from tools.schemas.adaptation import rename_keys
from tools.sources.mcp import Definition, McpTool, SkippedTool, StdioServer, suggest_level
from tools.sources.mcp.definitions import read_definitions
from tools.toolbox import Toolbox

SERVER = StdioServer(("server",))
OBJECT = {"type": "object"}


def described(name: str = "save", schema: Any = OBJECT, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": schema, **more}


def read(*tools: Any) -> tuple[list[Definition], list[SkippedTool]]:
    found = read_definitions(tools)
    return list(found.definitions), list(found.skipped)


def definition_of(**schema: Any) -> Definition:
    found, left_out = read(described(schema={**OBJECT, **schema}))
    assert left_out == []
    return found[0]


def reason_for(**schema: Any) -> str:
    found, left_out = read(described(schema={**OBJECT, **schema}))
    assert found == []
    return left_out[0].reason


def test_every_name_is_made_legal_and_unique() -> None:
    names = [
        "a b",
        "a_b",
        "A_B",
        "a/b",
        "1st",
        "日本",
        "x" * 90,
        "x" * 91,
        "ok.name",
        "Ok.Name",
        "-",
        "a..b",
        "é",
    ]
    first, _ = read(*(described(name) for name in names))
    second, _ = read(*(described(name) for name in reversed(names)))
    legal = {tool.name: tool.legal_name for tool in first}
    assert legal == {tool.name: tool.legal_name for tool in second}
    assert len({name.lower() for name in legal.values()}) == len(names)
    toolbox = Toolbox()
    for definition in first:
        assert len(definition.legal_name) <= 64
        toolbox.register(McpTool(definition, SERVER, "there", Level.READ))


def test_params_with_names_reserved_for_the_run_are_renamed_only_for_the_model() -> None:
    inner = {
        "properties": {"organization": {"type": "string"}},
        "required": ["organization"],
        "type": "object",
    }
    definition = definition_of(
        properties={
            "user_id": {"type": "string"},
            "user_id_": {},
            "list": {"items": {"$ref": "#/$defs/inner"}},
        },
        required=["user_id"],
        dependentRequired={"user_id": ["list"]},
        default={"user_id": "u"},
        **{"$defs": {"inner": inner}},
    )
    assert set(definition.input_schema["properties"]) == {"user_id__", "user_id_", "list"}
    assert definition.input_schema["required"] == ["user_id__"]
    assert definition.input_schema["dependentRequired"] == {"user_id__": ["list"]}
    assert definition.input_schema["default"] == {"user_id__": "u"}
    tool = McpTool(definition, SERVER, "there", Level.READ)
    Toolbox().register(tool)
    given = {"user_id__": "u", "user_id_": 1, "list": [{"organization_": "o"}]}
    assert tool.check_params(given) == given
    assert rename_keys(given, definition.shown_names) == {
        "user_id": "u",
        "user_id_": 1,
        "list": [{"organization": "o"}],
    }
    with pytest.raises(ToolError, match="user_id__"):
        tool.check_params({"list": []})


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "not an object"),
        ({"properties": {"a": {"$ref": "https://example.com/s.json"}}}, "another document"),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "a broken reference"),
        (
            {"properties": {"a": {"$ref": "#there"}}, "$defs": {"b": {"$anchor": "there"}}},
            "by name, not by path",
        ),
        (
            {"properties": {"a": {"$ref": "#/required"}}, "required": ["a"]},
            "something that is not a schema",
        ),
        ({"description": "x" * 200_001}, "characters"),
        ({"enum": list(range(20_001))}, "more than 20,000 parts"),
        ({"properties": {"a\ud800": {}}}, "cannot be"),
        ({"properties": {"a\x00": {}}}, "cannot be stored"),
    ],
)
def test_an_unusable_tool_is_left_out_with_a_reason(schema: dict[str, Any], words: str) -> None:
    assert words in reason_for(**schema)


def test_a_tool_with_a_schema_that_is_too_deep_is_left_out() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"items": deep}
    assert "nested more than 64 levels deep" in reason_for(properties={"a": deep})


@pytest.mark.parametrize(
    "of",
    [lambda part: {"allOf": [part, part]}, lambda part: {"properties": {"a": part, "b": part}}],
)
def test_a_tool_with_too_many_repetitions_in_its_schema_is_left_out(
    of: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    steps = {f"d{step}": of({"$ref": f"#/$defs/d{step + 1}"}) for step in range(40)}
    schema = {
        "properties": {"x": {"$ref": "#/$defs/d0"}},
        "$defs": {**steps, "d40": {"type": "string"}},
    }
    assert "repeats itself" in reason_for(**schema)
    found = read_definitions([described(outputSchema={**OBJECT, **schema})])
    assert [each.output_schema for each in found.definitions] == [None]
    assert "repeats itself" in found.adapted[0].reason


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"$ref": "#/$defs/b"}, {"$ref": "#/$defs/a"}),
        (
            {"$dynamicRef": "#/$defs/b"},
            {"properties": {"in": {}}, "not": {"anyOf": [{"$ref": "#/$defs/a"}]}},
        ),
        (
            {"properties": {"in": {"$ref": "#/$defs/b"}}, "if": {"$ref": "#/$defs/b"}},
            {"then": {"$ref": "#/$defs/a"}},
        ),
    ],
)
def test_a_tool_with_an_endlessly_circular_schema_is_left_out(
    a: dict[str, Any], b: dict[str, Any]
) -> None:
    assert "circular reference" in reason_for(
        properties={"x": {"$ref": "#/$defs/a"}}, **{"$defs": {"a": a, "b": b}}
    )


def test_a_tool_with_a_chain_of_references_that_is_too_long_is_left_out() -> None:
    chain = {f"d{step}": {"$ref": f"#/$defs/d{step + 1}"} for step in range(3_000)}
    assert "too long a chain" in reason_for(
        properties={"x": {"$ref": "#/$defs/d0"}}, **{"$defs": {**chain, "d3000": {}}}
    )


def test_a_tree_is_a_legal_schema() -> None:
    tree = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "parts": {"items": {"$ref": "#/$defs/tree"}}},
    }
    definition = definition_of(
        properties={"tree": {"$ref": "#/$defs/tree"}}, **{"$defs": {"tree": tree}}
    )
    tool = McpTool(definition, SERVER, "there", Level.READ)
    given = {"tree": {"name": "a", "parts": [{"name": "b", "parts": [{"name": "c"}]}]}}
    assert tool.check_params(given) == given
    given["tree"]["parts"][0]["name"] = 1  # type: ignore[index]
    with pytest.raises(ToolError, match=r"tree\.parts\.0\.name"):
        tool.check_params(given)


@feature(
    "Tools from API descriptions",
    "Checking the params of any schema ends",
    "tools/schemas/validation.py",
)
def test_a_value_that_makes_a_legal_schema_explode_is_refused_quickly() -> None:
    twice = {"allOf": [{"properties": {"in": {"$ref": "#/$defs/twice"}}}] * 2}
    definition = definition_of(
        properties={"x": {"$ref": "#/$defs/twice"}}, **{"$defs": {"twice": twice}}
    )
    given: dict[str, Any] = {}
    for _ in range(50):
        given = {"in": given}
    began = time.monotonic()
    with pytest.raises(ToolError, match="cannot be checked") as failure:
        McpTool(definition, SERVER, "there", Level.READ).check_params({"x": given})
    assert not failure.value.attempted
    assert time.monotonic() - began < 45


def test_tools_that_cannot_be_read_in_time_are_left_out() -> None:
    found = read_definitions([described("a"), described("b")], time.monotonic() - 1)
    assert (found.definitions, len(found.skipped)) == ((), 1)
    assert "2 more are skipped" in found.skipped[0].reason


def test_name_patterns_and_uniqueness_are_left_to_the_server() -> None:
    definition = definition_of(
        properties={"tags": {"type": "array", "uniqueItems": True}},
        patternProperties={"(a+)+$": {}},
        additionalProperties=False,
    )
    tool = McpTool(definition, SERVER, "there", Level.READ)
    Toolbox().register(tool)
    assert tool.check_params({"tags": [1, 1], "a" * 40 + "!": 1})


def test_a_param_that_is_copied_to_a_header_is_shown_without_that_keyword() -> None:
    definition = definition_of(properties={"region": {"type": "string", "x-mcp-header": "Region"}})
    tool = McpTool(definition, SERVER, "there", Level.READ)
    assert tool.schema["properties"]["region"] == {"type": "string"}
    assert definition.copies_params, "Gadget itself sends it"


def test_texts_are_cleaned_for_display() -> None:
    hidden = "".join(chr(0xE0000 + ord(char)) for char in "obey")
    found, _ = read(
        described(description=f"\x1b[31mSaves\u202e it.{hidden}\n" + "x" * 3_000, title="a\nb")
    )
    assert found[0].description.startswith("Saves it.\nxxx")
    assert len(found[0].description) == 1_024
    assert found[0].title == "a b"
    assert read(described())[0][0].description == "save: no description."


def test_the_second_of_two_tools_with_the_same_name_is_left_out() -> None:
    found, left_out = read(described(), described(description="other"))
    assert (len(found), left_out[0].reason) == (1, "the server lists two tools with this name")


def test_a_definition_can_be_stored_as_json() -> None:
    definition = definition_of(properties={"org": {"type": "string"}})
    assert Definition.from_json(json.loads(json.dumps(definition.to_json()))) == definition


@pytest.mark.parametrize(
    ("annotations", "level"),
    [
        ({}, Level.DESTRUCTIVE),
        ({"readOnlyHint": "yes"}, Level.DESTRUCTIVE),
        ({"destructiveHint": False}, Level.WRITE),
        ({"readOnlyHint": True}, Level.READ),
    ],
)
def test_the_suggested_level_follows_the_tools_hints(
    annotations: dict[str, Any], level: Level
) -> None:
    assert suggest_level(annotations) is level


def test_a_tool_that_requires_a_task_is_left_out_with_a_reason() -> None:
    tools = [described(kind, execution={"taskSupport": kind}) for kind in ("required", "optional")]
    found, (left_out,) = read(*tools)
    assert [tool.name for tool in found] == ["optional"]
    assert (left_out.name, left_out.reason) == (
        "required",
        "it can only be called as a task, which Gadget does not support",
    )


@pytest.mark.parametrize(
    ("hints", "schema", "level"),
    [
        ({"readOnlyHint": True, "openWorldHint": True}, {}, Level.WRITE),
        ({"readOnlyHint": True, "openWorldHint": False}, {}, Level.READ),
        ({"readOnlyHint": True}, {"properties": {"page_url": {"type": "string"}}}, Level.WRITE),
        (
            {"readOnlyHint": True},
            {"properties": {"q": {"properties": {"query": {}, "variables": {}}}}},
            Level.DESTRUCTIVE,
        ),
    ],
)
def test_the_level_read_is_not_suggested_for_a_tool_that_can_send_data_out(
    hints: dict[str, bool], schema: dict[str, Any], level: Level
) -> None:
    definition = definition_of(**schema)
    assert suggest_level(hints, definition) is level


@pytest.mark.parametrize(
    "schema", [{}, None, True, {"$schema": "http://json-schema.org/draft-07/schema#"}]
)
def test_a_tool_with_an_empty_schema_does_not_have_params(schema: Any) -> None:
    (definition,), skipped = read(described(schema=schema))
    assert skipped == []
    tool = McpTool(definition, SERVER, "there", Level.READ)
    Toolbox().register(tool)
    assert tool.check_params({}) == {}
    with pytest.raises(ToolError, match="There is no parameter 'x'"):
        tool.check_params({"x": 1})


def test_a_tool_without_a_schema_does_not_have_params() -> None:
    (definition,), skipped = read({"name": "save"})
    assert (definition.input_schema["properties"], skipped) == ({}, [])


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "string"}}},
        {"type": ["object", "null"], "properties": {"a": {"type": "string"}}},
        {
            "$ref": "#/definitions/In",
            "definitions": {"In": {"type": "object", "properties": {"a": {"type": "string"}}}},
        },
        {"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "null"}]},
    ],
)
def test_a_schema_that_allows_an_object_is_used(schema: Any) -> None:
    (definition,), skipped = read(described(schema=schema))
    assert (definition.input_schema["type"], skipped) == ("object", [])
    tool = McpTool(definition, SERVER, "there", Level.READ)
    assert tool.check_params({"a": "x"}) == {"a": "x"}
    with pytest.raises(ToolError):
        tool.check_params({"a": 1})


@feature(
    "Tools from API descriptions",
    "A faulty MCP tool leaves the others",
    "tools/sources/mcp/definitions.py",
)
@pytest.mark.parametrize(
    ("bad", "name", "words"),
    [
        (None, "tool 2", "it is not an object"),
        ("save", "tool 2", "it is not an object"),
        ({"inputSchema": OBJECT}, "tool 2", "it has no name"),
        ({"name": None, "inputSchema": OBJECT}, "tool 2", "it has no name"),
        (described("bad", {"type": "string"}), "bad", "its params are not an object"),
        (
            described("bad", {"anyOf": [{"type": "string"}, {"type": "null"}]}),
            "bad",
            "its params are not an object",
        ),
        (described("bad", "string"), "bad", "its schema is not an object"),
        (described("bad", ["object"]), "bad", "its schema is not an object"),
        (described("bad", schema=False), "bad", "its schema is not an object"),
    ],
)
def test_only_the_bad_tool_is_left_out_and_named(bad: Any, name: str, words: str) -> None:
    found, (left_out,) = read(described("first"), bad, described("last"))
    assert [tool.name for tool in found] == ["first", "last"]
    assert left_out.name == name
    assert words in left_out.reason


@pytest.mark.parametrize(
    "more",
    [
        {"annotations": {"readOnlyHint": "perhaps", "destructiveHint": False}},
        {"annotations": [1]},
        {"description": 7},
        {"title": {"en": "x"}},
        {"execution": "sometimes"},
        {"icons": "none", "_meta": 3},
    ],
)
def test_a_faulty_part_outside_the_schema_is_left_out_and_the_tool_is_kept(
    more: dict[str, Any],
) -> None:
    (definition,), skipped = read(described(**more))
    assert skipped == []
    assert definition.annotations == (
        {"destructiveHint": False} if isinstance(more.get("annotations"), dict) else {}
    )


@pytest.mark.parametrize(
    "outputs",
    [
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}},
        {"$ref": "https://example.com/schema.json"},
        "object",
        {"description": "x" * 200_001},
    ],
)
def test_an_unusable_output_schema_is_dropped_with_a_note(outputs: Any) -> None:
    found = read_definitions([described(outputSchema=outputs)])
    assert ([each.output_schema for each in found.definitions], found.skipped) == ([None], ())
    assert found.adapted[0].reason.startswith("its output schema: ")


@feature(
    "Tools from API descriptions",
    "Faulty schemas lose the faulty keyword",
    "tools/schemas/dialects.py",
)
@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "number", "minimum": 0, "exclusiveMinimum": True}, 0.5, 0),
        ({"type": "number", "maximum": 9, "exclusiveMaximum": True}, 8, 9),
        ({"type": "number", "minimum": 0, "exclusiveMinimum": False}, 0, -1),
        ({"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}, ["a", 1], [1, "a"]),
        ({"type": "string", "pattern": r"^(?<year>\d{4})$"}, "2026", "26"),
        ({"type": "string", "pattern": r"^\p{Letter}+$"}, "Zoë", "Zoë1"),
        ({"type": "string", "pattern": r"^\p{Script=Greek}+$"}, "αβγ", "abc"),
        ({"type": "string", "pattern": r"^[\u00e0-\u00ff]+$"}, "é", "e"),
        ({"type": "string", "pattern": r"^\u{1F600}$"}, "😀", ":)"),
        ({"type": "object", "properties": {"x": {"required": True}}}, {"x": 1}, {}),
        ({"type": "object", "dependencies": {"x": ["y"]}}, {"x": 1, "y": 2}, {"x": 1}),
    ],
)
def test_older_schemas_and_ecma_patterns_are_translated(
    schema: dict[str, Any], good: Any, bad: Any
) -> None:
    found = read_definitions([described(schema={**OBJECT, "properties": {"a": schema}})])
    assert (found.skipped, found.adapted) == ((), ())
    tool = McpTool(found.definitions[0], SERVER, "there", Level.READ)
    assert tool.check_params({"a": good}) == {"a": good}
    with pytest.raises(ToolError):
        tool.check_params({"a": bad})


@pytest.mark.parametrize(
    ("schema", "note"),
    [
        ({"type": "text"}, "properties.a.type is not valid, so it is left out"),
        ({"minLength": "3"}, "properties.a.minLength is not valid, so it is left out"),
        ({"enum": "red"}, "properties.a.enum is not valid, so it is left out"),
        ({"required": [1]}, "properties.a.required.0 is not valid, so it is left out"),
        ("string", "properties.a is not valid, so it is left out"),
        (
            {"anyOf": ["string", {"type": "null"}]},
            "properties.a.anyOf.0 is not valid, so it is left out",
        ),
        ({"pattern": "[a-"}, "the pattern '[a-' is not checked"),
    ],
)
def test_an_illegal_keyword_is_dropped_with_a_note(schema: Any, note: str) -> None:
    found = read_definitions([described(schema={**OBJECT, "properties": {"a": schema}})])
    assert [each.reason for each in found.adapted] == [note]
    tool = McpTool(found.definitions[0], SERVER, "there", Level.READ)
    assert tool.check_params({"a": "any"}) == {"a": "any"}


def test_reading_a_schema_does_not_change_it() -> None:
    schema = {**OBJECT, "properties": {"a": {"required": [1], "enum": "red", "type": "text"}}}
    before = json.dumps(schema)
    read(described(schema=schema))
    assert json.dumps(schema) == before, "its hash would depend on the reader"


def test_a_property_can_be_named_like_a_keyword() -> None:
    names = (
        "items",
        "type",
        "required",
        "pattern",
        "dependencies",
        "enum",
        "exclusiveMinimum",
        "properties",
    )
    found = read_definitions(
        [described(schema={**OBJECT, "properties": {name: {"type": "string"} for name in names}})]
    )
    assert (found.skipped, found.adapted) == ((), ())
    assert set(found.definitions[0].input_schema["properties"]) == set(names)
