"""A third-party server, over standard input and output, and over HTTP."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from tests.features import feature
from tests.processes import find_free_port
from tests.tools.sources_mcp.servers import FOLDER, PUBLISHED, called, failure_of, tool_of
from tools.contract import ErrorCode, Level, NetworkAccess
from tools.sources.mcp import PROCESS_POOL, HttpServer, Server, list_tools, suggest_level
from tools.testing import judge_tool
from tools.toolbox import Permission, Toolbox

PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def over_http() -> Iterator[HttpServer]:
    port = find_free_port()
    process = subprocess.Popen([sys.executable, str(FOLDER / "over_http.py"), str(port)])
    try:
        _wait_for(port)
        yield HttpServer(
            f"http://127.0.0.1:{port}/mcp", reach=NetworkAccess(private=frozenset({"127.0.0.1"}))
        )
    finally:
        process.terminate()
        process.wait(10)


def _wait_for(port: int) -> None:
    ends_at = time.monotonic() + PATIENCE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < ends_at
            time.sleep(0.05)
        else:
            return


@pytest.fixture(params=["stdio", "http"])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = PUBLISHED if request.param == "stdio" else request.getfixturevalue("over_http")
    return found


def test_the_server_lists_its_tools_in_the_newest_revision(server: Server) -> None:
    listing = list_tools(server)
    assert (listing.name, listing.protocol, listing.skipped) == ("mcp-time", "2026-07-28", ())
    assert [tool.name for tool in listing.tools] == ["get_current_time", "convert_time"]


@feature(
    "Tools from API descriptions",
    "MCP servers over standard input and output and over streamable HTTP, in all revisions",
    "tools/sources/mcp/calls.py",
)
def test_a_tool_of_the_server_can_be_registered_and_returns_data(server: Server) -> None:
    tool = tool_of(server, "convert_time")
    toolbox = Toolbox()
    toolbox.register(tool)
    assert toolbox.get_tool("there.convert_time") is tool
    result = called(tool, source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo")
    assert result.success, result
    assert result.data["target"]["datetime"].endswith("T21:00:00+09:00")
    assert result.markdown == ""  # the response is given once, as data


def test_params_are_checked_before_the_call_is_sent(server: Server) -> None:
    tool = tool_of(server, "convert_time")
    code, definite, message = failure_of(called(tool, source_timezone="UTC", time="12:00"))
    assert (code, definite) == ("MISSING_PARAM", True)
    assert "target_timezone" in message


def test_a_refusal_by_the_server_is_a_definite_failure_with_its_message(server: Server) -> None:
    code, definite, message = failure_of(
        called(tool_of(server, "get_current_time", Level.WRITE), timezone="Atlantis")
    )
    assert (code, definite) == (ErrorCode.OPERATION_FAILED, True)
    assert "Atlantis" in message


def test_the_admin_sets_the_level(server: Server) -> None:
    definition = list_tools(server).tools[0]
    assert suggest_level(definition.annotations) in Level
    for level, decision in (
        (Level.READ, Permission.AUTO),
        (Level.WRITE, Permission.ASK),
        (Level.DESTRUCTIVE, Permission.ASK),
    ):
        tool = tool_of(server, "get_current_time", level)
        assert judge_tool(tool, {"timezone": "UTC"}).permission is decision


def test_sixty_four_calls_over_eight_threads_succeed(server: Server) -> None:
    tool = tool_of(server, "get_current_time")
    done: list[bool] = []

    def work() -> None:
        done.extend(called(tool, timezone="UTC").success for _ in range(8))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert done == [True] * 64


def test_one_process_serves_all_calls() -> None:
    tool = tool_of(PUBLISHED, "get_current_time")
    pids = set()
    for _ in range(3):
        assert called(tool, timezone="UTC").success
        pids.add(PROCESS_POOL.pid(PUBLISHED))
    assert len(pids) == 1
    assert 0 not in pids


def test_a_private_address_is_refused_unless_an_admin_allows_it(over_http: HttpServer) -> None:
    tool = tool_of(over_http, "get_current_time", Level.WRITE)
    tool._server = HttpServer(over_http.url)
    code, definite, message = failure_of(called(tool, timezone="UTC"))
    assert (code, definite) == (ErrorCode.SECURITY_VIOLATION, True)
    assert "127.0.0.1" in message
