"""Malformed responses: the outcome is correct, the server's message is kept, and the next call
works."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.features import feature
from tests.sampling import take_sample
from tests.tools.sources_mcp.servers import called, misbehaving, tool_of
from tests.tools.sources_mcp.shapes import VALUES, WORDS, generate_shapes
from tools.contract import Level, ToolError, ToolResult
from tools.sources.mcp import list_tools

SHAPES = generate_shapes()


def judge(result: ToolResult) -> str:
    if result.success:
        return "happened"
    assert result.error is not None
    return "failed" if result.error.is_definite else "unknown"


def test_there_are_500_shapes_with_every_outcome() -> None:
    assert len(SHAPES) >= 500
    assert min(Counter(shape.outcome for shape in SHAPES).values()) >= 20


@feature(
    "Tools from API descriptions",
    "An MCP response without `isError` counts as done, whatever its form",
    "tools/sources/mcp/results.py",
)
def test_every_malformed_response_has_the_correct_outcome_and_keeps_its_message() -> None:
    server = misbehaving(owner="shapes")
    tool, echo = tool_of(server, "verbatim", Level.WRITE), tool_of(server, "echo")
    wrong = []
    for shape in take_sample(SHAPES, 4, "shapes of answers"):
        result = called(tool, line=shape.line)
        told = result.error.text if result.error else result.for_model()
        is_told = not shape.has_words or WORDS in told
        if judge(result) != shape.outcome or not is_told or result.summary in ("", "Done"):
            wrong.append((shape, result))
    assert wrong == []
    assert called(echo, text="next").success


@pytest.mark.parametrize("key", ["result", "tools", "entry"])
def test_every_malformed_listing_loses_at_most_the_malformed_tool(key: str, tmp_path: Path) -> None:
    file = tmp_path / "listing"
    server = misbehaving(owner=key, listing=file)
    good = {"name": "good", "inputSchema": {"type": "object"}}
    for value in VALUES:
        results = {"result": value, "tools": {"tools": value}, "entry": {"tools": [value, good]}}
        message = json.dumps({"jsonrpc": "2.0", "id": 0, "result": results[key]})
        file.write_text(message.replace('"id": 0', '"id": MY_ID'))
        if key == "entry":
            listing = list_tools(server)
            assert [tool.name for tool in listing.tools] == ["good"]
            assert len(listing.skipped) == 1, value
        elif isinstance(results[key], dict) and isinstance(results[key].get("tools"), list):
            assert list_tools(server).tools == ()
        else:
            with pytest.raises(
                ToolError, match="cannot list its tools: Its response has no list of tools"
            ) as failure:
                list_tools(server)
            assert not failure.value.attempted


@pytest.mark.parametrize(
    ("greeting", "words"),
    [
        ('{"jsonrpc":"2.0","id":MY_ID,"result":{}}', "its greeting is not valid"),
        ('{"jsonrpc":"2.0","id":MY_ID,"result":"welcome"}', "its greeting is not valid"),
        (
            '{"jsonrpc":"2.0","id":MY_ID,"result":{"protocolVersion":5}}',
            "its greeting is not valid",
        ),
        (f'{{"id":MY_ID,"error":"{WORDS}"}}', f"did not accept the connection: {WORDS}."),
        (
            f'{{"id":MY_ID,"error":{{"code":-32000,"message":"{WORDS}"}}}}',
            f"did not accept the connection: {WORDS}.",
        ),
        (f'{{"id":MY_ID,"detail":"{WORDS}"}}', f"did not accept the connection: {WORDS}."),
    ],
)
def test_an_invalid_greeting_is_reported_with_the_servers_message(
    greeting: str, words: str
) -> None:
    with pytest.raises(ToolError) as failure:
        list_tools(misbehaving(owner="greeting", greeting=greeting))
    assert words in failure.value.message
    assert not failure.value.attempted
