"""Right before its effect, a call checks its lease again; it does not start if another driver may
have settled it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from tests.tools.network.web_server import WebServer, reply
from tests.tools.toolbox.sample_tools import Does
from tools.contract import ErrorCode, Fence, NetworkAccess, ToolContext, ToolError, ToolResult
from tools.network import request
from tools.toolbox import PreparedCall, run_call

HERE = NetworkAccess(private=frozenset({"127.0.0.1"}))


@pytest.fixture
def server() -> Iterator[WebServer]:
    with WebServer({"/": reply()}) as running:
        yield running


class Lease:
    """A lease that has expired once `over` is set."""

    over = False

    def may_begin(self) -> bool:
        return not self.over


def run(
    lease: Lease, work: Callable[[ToolContext], object], *, is_read: bool = False
) -> ToolResult:
    look = Fence(lease.may_begin, is_read=is_read)
    return run_call(PreparedCall(0, Does(work), {}, ToolContext(1), 5.0, fence=look))


def methods(server: WebServer) -> list[str]:
    return [each.method for each in server.requests]


def test_a_tool_is_not_run_after_its_lease_expired() -> None:
    lease, ran = Lease(), []
    lease.over = True
    result = run(lease, lambda _: ran.append(1))
    assert not ran
    assert result.error is not None
    assert (result.error.code, result.error.is_definite) == (ErrorCode.WORKER_LOST, True)


def test_a_request_that_changes_something_is_not_sent_after_the_lease_expired(
    server: WebServer,
) -> None:
    lease = Lease()

    def work(_: ToolContext) -> str:
        request("GET", server.url, reach=HERE)
        lease.over = True
        request("POST", server.url, reach=HERE, body=b"{}")
        return "sent"

    error = run(lease, work).error
    assert error is not None
    assert (error.code, error.is_definite) == (ErrorCode.WORKER_LOST, True)
    assert methods(server) == ["GET"]


def test_an_async_tool_sends_no_request_after_its_lease_expired(server: WebServer) -> None:
    lease = Lease()

    async def work(_: ToolContext) -> str:
        lease.over = True
        await asyncio.to_thread(request, "POST", server.url, reach=HERE)
        return "sent"

    assert run(lease, work).error is not None
    assert not server.requests


def test_a_failure_after_the_first_effect_is_not_definite(server: WebServer) -> None:
    lease = Lease()

    def work(_: ToolContext) -> str:
        request("POST", server.url, reach=HERE)
        lease.over = True
        request("GET", server.url, reach=HERE)
        request("DELETE", server.url, reach=HERE)
        return "sent"

    error = run(lease, work).error
    assert error is not None
    assert not error.is_definite
    assert methods(server) == ["POST", "GET"]


def test_an_approved_read_checks_its_lease_before_its_requests(server: WebServer) -> None:
    lease = Lease()

    def work(_: ToolContext) -> str:
        lease.over = True
        request("GET", server.url, reach=HERE)
        return "sent"

    error = run(lease, work, is_read=True).error
    assert error is not None
    assert error.is_definite
    assert not server.requests


def test_a_call_without_a_last_check_sends_any_request(server: WebServer) -> None:
    request("POST", server.url, reach=HERE)
    with pytest.raises(ToolError, match="nothing was done"):
        Fence(lambda: False).check_execution()
    assert methods(server) == ["POST"]
