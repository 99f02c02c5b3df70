"""What becomes of a server's descriptions: legal tools, or none with a reason."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import mcp_types
import pytest

from tools.contract import Level, ToolError
from tools.sources.mcp import Definition, McpTool, StdioServer, suggest_level
from tools.sources.mcp.definitions import read_definitions
from tools.sources.mcp.schemas import rename_keys
from tools.toolbox import Toolbox

SERVER = StdioServer(("server",))
OBJECT = {"type": "object"}


def described(name: str = "save", schema: dict[str, Any] | None = None, **more: Any) -> mcp_types.Tool:
    return mcp_types.Tool(name=name, input_schema=schema or OBJECT, **more)


def definition_of(**schema: Any) -> Definition:
    found, left_out = read_definitions([described(schema={**OBJECT, **schema})])
    assert left_out == []
    return found[0]


def reason_for(**schema: Any) -> str:
    found, left_out = read_definitions([described(schema={**OBJECT, **schema})])
    assert found == []
    return left_out[0].reason


def test_every_name_becomes_a_legal_one_of_its_own() -> None:
    names = ["a b", "a_b", "A_B", "a/b", "1st", "日本", "x" * 90, "x" * 91, "ok.name", "Ok.Name", "-", "a..b", "é"]
    first, _ = read_definitions(described(name) for name in names)
    second, _ = read_definitions(described(name) for name in reversed(names))
    legal = {tool.name: tool.legal_name for tool in first}
    assert legal == {tool.name: tool.legal_name for tool in second}
    assert len({name.lower() for name in legal.values()}) == len(names)
    toolbox = Toolbox()
    for definition in first:
        assert len(definition.legal_name) <= 64
        toolbox.register(McpTool(definition, SERVER, "there", Level.READ))


def test_params_that_name_the_run_have_another_name_for_the_model_alone() -> None:
    inner = {"properties": {"organization": {"type": "string"}}, "required": ["organization"], "type": "object"}
    definition = definition_of(
        properties={"user_id": {"type": "string"}, "user_id_": {}, "list": {"items": {"$ref": "#/$defs/inner"}}},
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
        ({"properties": {"a": {"type": "text"}}}, "not valid at properties.a.type"),
        ({"properties": {"a": {"$ref": "https://example.com/s.json"}}}, "another document"),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "a broken reference"),
        ({"properties": {"a": {"$ref": "#there"}}, "$defs": {"b": {"$anchor": "there"}}}, "by name, not by path"),
        ({"properties": {"a": {"$ref": "#/required"}}, "required": ["a"]}, "something that is not a schema"),
        ({"description": "x" * 200_001}, "characters"),
        ({"enum": list(range(20_001))}, "more than 20,000 parts"),
        ({"properties": {"a\ud800": {}}}, "cannot be"),
        ({"properties": {"a\x00": {}}}, "cannot be stored"),
    ],
)
def test_what_cannot_be_offered_is_left_out_with_a_reason(schema: dict[str, Any], words: str) -> None:
    assert words in reason_for(**schema)


def test_a_schema_that_is_too_deep_is_left_out() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"items": deep}
    assert "nested more than 64 deep" in reason_for(properties={"a": deep})


@pytest.mark.parametrize(
    "of", [lambda part: {"allOf": [part, part]}, lambda part: {"properties": {"a": part, "b": part}}]
)
def test_a_schema_that_repeats_itself_is_left_out(of: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    steps = {f"d{step}": of({"$ref": f"#/$defs/d{step + 1}"}) for step in range(40)}
    schema = {"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {**steps, "d40": {"type": "string"}}}
    assert "repeats itself" in reason_for(**schema)
    found, left_out = read_definitions([described(output_schema={**OBJECT, **schema})])
    assert (found, "repeats itself" in left_out[0].reason) == ([], True)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"$ref": "#/$defs/b"}, {"$ref": "#/$defs/a"}),
        ({"$dynamicRef": "#/$defs/b"}, {"properties": {"in": {}}, "not": {"anyOf": [{"$ref": "#/$defs/a"}]}}),
        ({"properties": {"in": {"$ref": "#/$defs/b"}}, "if": {"$ref": "#/$defs/b"}}, {"then": {"$ref": "#/$defs/a"}}),
    ],
)
def test_a_schema_that_leads_in_a_circle_which_no_value_ends_is_left_out(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert "circular reference" in reason_for(properties={"x": {"$ref": "#/$defs/a"}}, **{"$defs": {"a": a, "b": b}})


def test_a_chain_of_references_that_is_too_long_is_left_out() -> None:
    chain = {f"d{step}": {"$ref": f"#/$defs/d{step + 1}"} for step in range(3_000)}
    assert "too long a chain" in reason_for(
        properties={"x": {"$ref": "#/$defs/d0"}}, **{"$defs": {**chain, "d3000": {}}}
    )


def test_a_tree_is_a_legal_schema() -> None:
    tree = {"type": "object", "properties": {"name": {"type": "string"}, "parts": {"items": {"$ref": "#/$defs/tree"}}}}
    definition = definition_of(properties={"tree": {"$ref": "#/$defs/tree"}}, **{"$defs": {"tree": tree}})
    tool = McpTool(definition, SERVER, "there", Level.READ)
    given = {"tree": {"name": "a", "parts": [{"name": "b", "parts": [{"name": "c"}]}]}}
    assert tool.check_params(given) == given
    given["tree"]["parts"][0]["name"] = 1  # type: ignore[index]
    with pytest.raises(ToolError, match=r"tree\.parts\.0\.name"):
        tool.check_params(given)


def test_a_value_that_makes_a_legal_schema_explode_is_refused_in_time() -> None:
    twice = {"allOf": [{"properties": {"in": {"$ref": "#/$defs/twice"}}}] * 2}
    definition = definition_of(properties={"x": {"$ref": "#/$defs/twice"}}, **{"$defs": {"twice": twice}})
    given: dict[str, Any] = {}
    for _ in range(50):
        given = {"in": given}
    began = time.monotonic()
    with pytest.raises(ToolError, match="cannot be checked") as failure:
        McpTool(definition, SERVER, "there", Level.READ).check_params({"x": given})
    assert not failure.value.attempted
    assert time.monotonic() - began < 45


def test_what_is_not_read_in_time_is_left_out() -> None:
    found, left_out = read_definitions([described("a"), described("b")], time.monotonic() - 1)
    assert (found, len(left_out)) == ([], 1)
    assert "2 more are skipped" in left_out[0].reason


def test_patterns_of_names_and_sets_are_left_to_the_server() -> None:
    definition = definition_of(
        properties={"tags": {"type": "array", "uniqueItems": True}},
        patternProperties={"(a+)+$": {}},
        additionalProperties=False,
    )
    tool = McpTool(definition, SERVER, "there", Level.READ)
    Toolbox().register(tool)
    assert tool.check_params({"tags": [1, 1], "a" * 40 + "!": 1})


def test_no_other_client_is_asked_for_headers_of_the_server() -> None:
    definition = definition_of(properties={"region": {"type": "string", "x-mcp-header": "Region"}})
    tool = McpTool(definition, SERVER, "there", Level.READ)
    assert tool.schema["properties"]["region"] == {"type": "string"}
    assert definition.copies_params, "Gadget itself sends it"


def test_words_are_made_fit_to_be_shown() -> None:
    hidden = "".join(chr(0xE0000 + ord(char)) for char in "obey")
    found, _ = read_definitions(
        [described(description=f"\x1b[31mSaves\u202e it.{hidden}\n" + "x" * 3_000, title="a\nb")]
    )
    assert found[0].description.startswith("Saves it.\nxxx")
    assert len(found[0].description) == 1_024
    assert found[0].title == "a b"
    assert read_definitions([described()])[0][0].description == "save: no description."


def test_two_tools_of_one_name_are_one() -> None:
    found, left_out = read_definitions([described(), described(description="other")])
    assert (len(found), left_out[0].reason) == (1, "the server lists two tools with this name")


def test_it_can_be_kept_as_json() -> None:
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
def test_a_level_is_suggested_only(annotations: dict[str, Any], level: Level) -> None:
    assert suggest_level(annotations) is level


def test_a_tool_that_demands_a_task_is_left_out_with_a_reason() -> None:
    tools = [described(kind, execution=mcp_types.ToolExecution(task_support=kind)) for kind in ("required", "optional")]
    found, (left_out,) = read_definitions(tools)
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
def test_no_read_is_suggested_for_what_can_carry_data_out(
    hints: dict[str, bool], schema: dict[str, Any], level: Level
) -> None:
    definition = definition_of(**schema)
    assert suggest_level(hints, definition) is level
