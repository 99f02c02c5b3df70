"""A request's correlation id is passed on with everything that is sent outside; a hostile id is
replaced."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from agents.platform.log_context import correlate
from gadget_site.edge.request_ids import RequestIds
from tests.features import feature
from tests.tools.mcp_servers.http_server import older_server
from tests.tools.network.web_server import WebServer, reply
from tests.tools.sources_mcp.servers import FOLDER, called, tool_of
from tools.contract import Level, NetworkAccess
from tools.contract.correlation import META_KEY, choose_correlation_id, get_correlation_id
from tools.network import request, request_async
from tools.sources.mcp import PROCESS_POOL, HttpServer, McpTool, StdioServer, list_tools

HERE = NetworkAccess(private=frozenset({"127.0.0.1"}))
HOSTILE = [
    "",
    "a b",
    "x" * 65,
    "a\r\nSet-Cookie: b=1",
    "<script>",
    "ä",
    "run-7",
    "a;b",
    "${jndi:ldap://x}",
    "\x00",
]


@pytest.fixture(autouse=True)
def _begin_without_id() -> Iterator[None]:
    """Clear the correlation id that an earlier test left in this thread."""
    correlate("")
    yield
    correlate("")


@pytest.fixture
def current() -> str:
    correlate("order-4711")
    return "order-4711"


@pytest.mark.parametrize(
    "sent", ["order-4711", "0af7651916cd43dd8448eb211c80319c", "A.b_c-1", "x" * 64]
)
def test_a_plain_id_is_kept(sent: str) -> None:
    assert choose_correlation_id(sent) == sent


@pytest.mark.parametrize("sent", HOSTILE)
def test_a_hostile_or_long_id_is_replaced(sent: str) -> None:
    chosen = choose_correlation_id(sent)
    assert chosen != sent
    assert len(chosen) == 32
    assert chosen.isalnum()


def ask(*headers: tuple[bytes, bytes], kind: str = "http") -> tuple[str, list[dict[str, Any]]]:
    """Send a request through the middleware; return the correlation id that the application saw,
    and the messages of the response."""
    inside: list[str] = []
    sent: list[dict[str, Any]] = []

    async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
        inside.append(get_correlation_id())
        await send(
            {"type": f"{kind}.response.start", "status": 200, "headers": [(b"x-other", b"1")]}
        )

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(RequestIds(application)({"type": kind, "headers": list(headers)}, None, send))
    return inside[0], sent


def test_a_request_keeps_its_id_and_the_response_has_it() -> None:
    inside, sent = ask((b"X-Request-Id", b"order-4711"))
    assert inside == "order-4711"
    assert sent[0]["headers"] == [(b"x-other", b"1"), (b"x-request-id", b"order-4711")]
    assert get_correlation_id() == ""


def test_a_missing_bad_or_repeated_id_is_replaced() -> None:
    name = b"x-request-id"
    found = [
        ask()[0],
        ask((name, b"a\r\nb"))[0],
        ask((name, b"\xff\xfe"))[0],
        ask((name, b"one"), (name, b"two"))[0],
        ask((name, b"socket"), kind="websocket")[0],
    ]
    assert found[-1] == "socket"
    assert len({*found}) == 5
    assert all(len(each) == 32 for each in found[:-1])


def test_requests_of_tools_have_the_correlation_id(current: str) -> None:
    with WebServer({"/": reply()}) as server:
        request("GET", server.url, reach=HERE)
        asyncio.run(request_async("GET", server.url, reach=HERE))
        request("GET", server.url, reach=HERE, headers={"X-Request-ID": "own"})
        correlate("")
        request("GET", server.url, reach=HERE)
    assert [each.headers.get("x-request-id") for each in server.requests] == [
        current,
        current,
        "own",
        None,
    ]


def test_calls_of_mcp_servers_over_http_have_the_correlation_id_as_header_and_in_meta(
    current: str,
) -> None:
    with older_server() as older:
        server = HttpServer(older.url("works"), {}, HERE)
        tool = McpTool(list_tools(server).tools[0], server, "there", Level.WRITE)
        correlate("another-1")
        called(tool)
    (call,) = [each for each in older.asked if each[2].get("method") == "tools/call"]
    lists = [
        headers["x-request-id"]
        for _, headers, message in older.asked
        if message.get("method") == "tools/list"
    ]
    assert (call[1]["x-request-id"], call[2]["params"]["_meta"][META_KEY]) == (
        "another-1",
        "another-1",
    )
    assert set(lists) == {current}


@feature(
    "Execution",
    "Each call of an MCP server carries the id of its run in `_meta`, also over standard input and output",
    "tools/contract/correlation.py, tools/sources/mcp/calls.py",
)
def test_a_server_built_with_the_sdk_reads_the_correlation_id_of_each_call() -> None:
    server = StdioServer((sys.executable, str(FOLDER / "meta_teller.py")))
    tool = tool_of(server, "tell")
    told = []
    for current in ("order-4711", "", "another-1"):
        correlate(current)
        result = called(tool)
        assert result.success, result
        told.append(json.loads(result.data["result"]).get(META_KEY))
    PROCESS_POOL.close_all()
    assert told == ["order-4711", None, "another-1"]
    assert META_KEY == "gadget/X-Request-ID"
