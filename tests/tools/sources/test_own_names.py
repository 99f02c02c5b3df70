"""A param that an outside system calls `user` keeps this name for the model, although the toolbox
reserves it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.features import feature
from tests.tools.sources.outside import Outside
from tools.contract import Level, ToolError
from tools.schemas.adaptation import rename_keys
from tools.sources.mcp import McpTool, StdioServer
from tools.sources.mcp.definitions import read_definitions
from tools.toolbox import Toolbox

INNER = {
    "type": "object",
    "properties": {"user_id": {"type": "string"}},
    "additionalProperties": False,
}
SCHEMA = {
    "type": "object",
    "required": ["user"],
    "properties": {
        "user": {"type": "string"},
        "list": {"type": "array", "items": {"$ref": "#/$defs/inner"}},
        "free": {"type": "object"},
    },
    "additionalProperties": False,
    "$defs": {"inner": INNER},
}
GIVEN: dict[str, Any] = {"user": "ann", "list": [{"user_id": "7"}], "free": {"user": "kept"}}


def mcp_tool(schema: dict[str, Any]) -> McpTool:
    (definition,) = read_definitions([{"name": "save", "inputSchema": schema}]).definitions
    return McpTool(definition, StdioServer(("server",)), "there", Level.READ)


def told(tool: Any) -> dict[str, Any]:
    Toolbox().register(tool)
    parameters: dict[str, Any] = tool.definition["function"]["parameters"]
    return parameters


@feature(
    "Tools from API descriptions",
    "A param that an outside tool calls `user` keeps this name for the model",
    "tools/sources/external_tool.py",
)
def test_a_param_called_user_keeps_its_name_for_an_mcp_server() -> None:
    tool = mcp_tool(SCHEMA)
    shown = told(tool)
    assert set(shown["properties"]) == {"user", "list", "free"}
    assert (shown["required"], set(shown["$defs"]["inner"]["properties"])) == (
        ["user"],
        {"user_id"},
    )
    params = tool.check_params(GIVEN)
    assert params == {"user_": "ann", "list": [{"user_id_": "7"}], "free": {"user": "kept"}}
    assert tool.check_params(params) == params
    assert rename_keys(params, {"user_": "user", "user_id_": "user_id"}) == GIVEN
    with pytest.raises(ToolError):
        tool.check_params({"list": []})


def test_a_param_called_user_keeps_its_name_for_an_api(outside: Outside) -> None:
    body = {"type": "object", "properties": {"organization": {"type": "string"}, "owner": INNER}}
    content = {"requestBody": {"content": {"application/json": {"schema": body}}}}
    parameter = {"name": "user", "in": "query", "schema": {"type": "string"}}
    tool = outside.tool({"/a": {"post": {**content, "parameters": [parameter]}}})
    assert {"user", "organization"} <= told(tool)["properties"].keys()
    sent = {"user": "ann", "organization": "acme", "owner": {"user_id": "7"}}
    assert outside.call(tool, sent).success
    assert outside.last.target == "/a?user=ann"
    assert outside.last.body == b'{"organization":"acme","owner":{"user_id":"7"}}'


def test_names_that_differ_only_in_a_final_underscore_are_shown_with_an_added_underscore() -> None:
    tool = mcp_tool({"type": "object", "properties": {"user": {}, "user_": {}}})
    assert set(told(tool)["properties"]) == {"user_", "user__"}


def test_deeply_nested_values_are_renamed_without_an_error() -> None:
    deep: Any = {"user": "x"}
    for _ in range(60):
        deep = [deep]
    tree = {
        "type": "object",
        "properties": {"user": {}, "x": {"$ref": "#/$defs/t"}},
        "$defs": {"t": {"items": {"$ref": "#/$defs/t"}}},
    }
    assert mcp_tool(tree).check_params({"x": deep})["x"] == deep
