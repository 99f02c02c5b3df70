"""MCP servers over HTTP: an older revision of the protocol, and every kind of connection
problem."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import pytest

from tests.features import feature
from tests.tools.mcp_servers.http_server import OlderServer, older_server
from tests.tools.sources_mcp.servers import called, called_too_late, failure_of
from tools.contract import Level, NetworkAccess, ToolError
from tools.sources.mcp import HttpServer, McpTool, list_tools
from tools.testing import run_tool

HERE = NetworkAccess(private=frozenset({"127.0.0.1"}))
TOKEN = "t0ken-of-the-connection"


@pytest.fixture
def older() -> Iterator[OlderServer]:
    with older_server() as server:
        yield server


def behind(older: OlderServer, behavior: str) -> HttpServer:
    return HttpServer(older.url(behavior), {"Authorization": f"Bearer {TOKEN}"}, HERE)


def tool_behind(older: OlderServer, behavior: str, level: Level = Level.WRITE) -> McpTool:
    definition = list_tools(behind(older, "works")).tools[0]
    return McpTool(definition, behind(older, behavior), "there", level)


def test_an_older_server_is_addressed_in_its_revision(
    older: OlderServer, caplog: pytest.LogCaptureFixture
) -> None:
    server = behind(older, "works")
    with caplog.at_level(logging.INFO):
        listing = list_tools(server)
        result = called(McpTool(listing.tools[0], server, "there", Level.WRITE))
    assert (listing.name, listing.protocol) == ("older", "2025-03-26")
    assert result.markdown == "saved for [hidden]"
    assert all(headers["authorization"] == f"Bearer {TOKEN}" for _, headers, _ in older.asked)
    assert TOKEN not in caplog.text
    assert TOKEN not in repr(server)
    discovered = [
        message for _, _, message in older.asked if message.get("method") == "server/discover"
    ]
    # The second connection does not ask again, because the server does not support the method.
    assert len(discovered) == 1


@feature(
    "Tools from API descriptions",
    "After an MCP server's error, the outcome of a write is unknown, unless the "
    "error says that the call was refused or failed",
    "tools/sources/mcp/errors.py",
)
@pytest.mark.parametrize(
    ("behavior", "code", "words"),
    [
        ("breaks", "NETWORK_ERROR", "disconnected before it responded"),
        ("fails", "NETWORK_ERROR", "failed with status 502"),
        ("huge", "NETWORK_ERROR", "larger than 10,000,000 bytes"),
        ("nonsense", "NETWORK_ERROR", "sent a response that does not follow the protocol: <html>"),
        ("accepts", "NETWORK_ERROR", "disconnected"),
        (
            "fails_inside",
            "OUTCOME_UNKNOWN",
            "does not say whether the call took effect: Internal error.",
        ),
        (
            "locked",
            "OUTCOME_UNKNOWN",
            "does not say whether the call took effect: Account is locked.",
        ),
        (
            "locked_with_400",
            "OUTCOME_UNKNOWN",
            "does not say whether the call took effect: Account is locked.",
        ),
        (
            "locked_in_a_stream",
            "OUTCOME_UNKNOWN",
            "does not say whether the call took effect: Account is locked.",
        ),
        (
            "error_as_text",
            "OUTCOME_UNKNOWN",
            "does not say whether the call took effect: Account is locked.",
        ),
        ("says_502", "NETWORK_ERROR", "failed with status 502: The ledger is closed."),
        ("plain_json", "NETWORK_ERROR", "does not follow the protocol: Account is locked."),
        ("times_out", "NETWORK_ERROR", "failed with status 408"),
        ("did_and_moves", "NETWORK_ERROR", "failed with status 302"),
        ("did_and_shows", "NETWORK_ERROR", "failed with status 303"),
    ],
)
def test_a_write_without_a_usable_response_is_unknown_and_not_repeated(
    older: OlderServer, behavior: str, code: str, words: str
) -> None:
    told = failure_of(called(tool_behind(older, behavior)))
    assert told[:2] == (code, False)
    assert words in told[2]
    assert older.calls() == 1
    assert called(tool_behind(older, "works")).success


def test_a_late_write_is_not_sent(older: OlderServer) -> None:
    assert failure_of(called_too_late(tool_behind(older, "works")))[:2] == ("WORKER_LOST", True)
    assert older.calls() == 0


def test_a_lost_read_is_repeated_once(older: OlderServer) -> None:
    assert failure_of(called(tool_behind(older, "breaks", Level.READ)))[0] == "NETWORK_ERROR"
    assert older.calls() == 2


def test_a_read_raised_to_a_write_is_not_repeated(older: OlderServer) -> None:
    result = run_tool(tool_behind(older, "breaks", Level.READ), {}, level=Level.WRITE)
    assert failure_of(result)[:2] == ("NETWORK_ERROR", False)
    assert older.calls() == 1


def test_requests_from_the_server_do_not_affect_the_outcome_of_the_call(older: OlderServer) -> None:
    assert failure_of(called(tool_behind(older, "asks")))[:2] == ("NETWORK_ERROR", False)
    # The client declined the server's request, and the server refused that response.
    assert any(message.get("id") == "s1" for _, _, message in older.asked)


def test_a_call_of_a_hanging_server_ends_at_the_timeout(older: OlderServer) -> None:
    began = time.monotonic()
    assert failure_of(called(tool_behind(older, "hangs"), timeout_s=2.0))[:2] == ("TIMEOUT", False)
    assert time.monotonic() - began < 20
    assert called(tool_behind(older, "works")).success


@feature(
    "Tools from API descriptions",
    "A call that an MCP server redirects is sent once, and counts as not done",
    "tools/sources/mcp/connection.py",
)
@pytest.mark.parametrize("behavior", ["moves", "moves_to_itself", "moves_within"])
def test_a_redirected_write_is_reported_as_not_done_and_is_sent_once(
    older: OlderServer, behavior: str
) -> None:
    code, definite, message = failure_of(called(tool_behind(older, behavior)))
    assert (code, definite) == ("OPERATION_FAILED", True)
    assert "redirects to another address, and redirects are not followed" in message
    assert older.calls() == 1


def test_a_redirect_to_another_server_is_not_followed(older: OlderServer) -> None:
    with pytest.raises(ToolError, match="redirects to another address"):
        list_tools(behind(older, "away"))


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, "UNAUTHORIZED"),
        (403, "FORBIDDEN"),
        (404, "NOT_FOUND"),
        (405, "OPERATION_FAILED"),
        (429, "RATE_LIMIT_EXCEEDED"),
    ],
)
def test_a_refusal_has_its_code_and_is_reported_as_not_done(
    older: OlderServer, status: int, code: str
) -> None:
    told = failure_of(called(tool_behind(older, str(status))))
    assert told[:2] == (code, True)
    with pytest.raises(ToolError) as failure:
        list_tools(behind(older, str(status)))
    assert failure.value.code == code
    assert not failure.value.attempted


@pytest.mark.parametrize(
    ("behavior", "code", "words"),
    [
        ("says_401", "UNAUTHORIZED", "does not accept the credentials: The ledger is closed."),
        ("says_422", "OPERATION_FAILED", "responded with status 422: The ledger is closed."),
        ("unknown_tool", "OPERATION_FAILED", "refused the call: No such tool."),
        ("bad_params", "OPERATION_FAILED", "refused the call: Wrong params."),
    ],
)
def test_a_refusal_includes_the_servers_message(
    older: OlderServer, behavior: str, code: str, words: str
) -> None:
    told = failure_of(called(tool_behind(older, behavior)))
    assert told[:2] == (code, True)
    assert words in told[2]


@pytest.mark.parametrize(
    "behavior", ["locked", "locked_in_a_stream", "locked_with_400", "error_as_text"]
)
def test_a_read_fails_immediately_with_the_message_of_an_error_object(
    older: OlderServer, behavior: str
) -> None:
    told = failure_of(called(tool_behind(older, behavior, Level.READ)))
    assert told == (
        "OPERATION_FAILED",
        True,
        f"{list_title(older)} responded with an error: Account is locked.",
    )
    assert older.calls() == 1


def list_title(older: OlderServer) -> str:
    return behind(older, "works").title


@pytest.mark.parametrize("behavior", ["result_without_envelope_parts", "result_is_text"])
def test_a_result_in_a_malformed_envelope_is_accepted(older: OlderServer, behavior: str) -> None:
    result = called(tool_behind(older, behavior))
    assert (result.success, result.markdown) == (True, "saved")


def test_a_call_of_an_unreachable_server_is_reported_as_not_attempted(older: OlderServer) -> None:
    tool = tool_behind(older, "works")
    urls = {"http://127.0.0.1:1/mcp": "NETWORK_ERROR", "http://[::1]:9/mcp": "SECURITY_VIOLATION"}
    urls |= {
        "http://169.254.169.254/mcp": "SECURITY_VIOLATION",
        "ftp://127.0.0.1/": "SECURITY_VIOLATION",
        "http://[::": "INVALID_PARAMETER",
    }
    for url, code in urls.items():
        tool._server = HttpServer(url, reach=HERE)
        assert failure_of(called(tool))[:2] == (code, True), url
