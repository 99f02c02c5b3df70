"""An internal failure is reported to an agent without its text, which may contain a key, a path or
SQL."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from agents.mcp_server.failures import FAILED, hide_failures
from agents.mcp_server.server import build_server


async def _fail(error: BaseException) -> str:
    raise error


async def _work(response: str) -> str:
    return response


@pytest.mark.parametrize(
    "error", [RuntimeError("key sk-123"), KeyError("sk-123"), TypeError("sk-123 is no JSON")]
)
def test_the_text_of_an_exception_stays_in_the_log(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(MCPError) as told:
        asyncio.run(hide_failures(_fail)(error))
    assert (told.value.error.code, told.value.error.message) == (types.INTERNAL_ERROR, FAILED)
    assert "sk-123" in caplog.text


def test_a_refusal_by_the_protocol_is_passed_on() -> None:
    with pytest.raises(MCPError, match="no such tool"):
        asyncio.run(hide_failures(_fail)(MCPError(types.INVALID_PARAMS, "no such tool")))


def test_a_response_is_passed_on() -> None:
    assert asyncio.run(hide_failures(_work)("a")) == "a"


@pytest.mark.parametrize(
    "method", ["tools/list", "tools/call", "tasks/get", "tasks/cancel", "tasks/update"]
)
def test_failures_of_each_kind_of_request_are_hidden(method: str) -> None:
    """A request without a caller fails in Gadget's own code."""
    handler: Any = build_server("1")._request_handlers[method].handler
    with pytest.raises(MCPError, match=FAILED):
        asyncio.run(handler(SimpleNamespace(), SimpleNamespace()))
