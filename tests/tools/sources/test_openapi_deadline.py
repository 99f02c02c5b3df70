"""A call has one deadline, after which it no longer sends requests."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from tests.features import feature
from tests.tools.sources.outside import REACH, Outside, Reply
from tools.contract import ErrorCode, ToolContext, ToolResult
from tools.sources.openapi import (
    AuthenticationKind,
    AuthenticationSettings,
    OpenAPITool,
    TokenCache,
)
from tools.toolbox.executor import Batch, FinishedCall, PreparedCall
from tools.toolbox.threads import count_abandoned_threads

READ: dict[str, Any] = {"/pets": {"get": {}}}
WRITE: dict[str, Any] = {"/pets": {"post": {}}}
CREDENTIALS = {"api": {"client_id": "client", "client_secret": "s3cret-value"}}
TIMEOUT_S = 2.0
EXECUTORS_S = 30.0
"""The executor's timeout. It is longer than the tool's own timeout, so that the latter ends the
call even on a slow machine."""


def tool_of(outside: Outside, paths: dict[str, Any]) -> OpenAPITool:
    made = outside.tool(
        paths,
        AuthenticationSettings(AuthenticationKind.OAUTH2, "api", token_url=f"{outside.url}/token"),
    )
    return OpenAPITool(
        made.operation, replace(made.connection, timeout_s=TIMEOUT_S), tokens=TokenCache()
    )


def result_in_a_batch(tool: OpenAPITool) -> ToolResult:
    """Return the result as the executor gets it; the call must end by itself and not leave anything
    running."""
    context = ToolContext(organization_id=1, reach=REACH, credentials=CREDENTIALS)
    batch = Batch()
    batch.start(PreparedCall(1, tool, {}, context, EXECUTORS_S))
    (finished,) = batch.wait(time.monotonic() + EXECUTORS_S + 1)
    assert isinstance(finished, FinishedCall)
    assert not finished.abandoned
    assert count_abandoned_threads() == 0
    return finished.result


@feature(
    "Tools from API descriptions",
    "A call has one deadline, including its token request, and sends nothing after it",
    "tools/sources/openapi/deadline.py",
)
@pytest.mark.parametrize("paths", [READ, WRITE])
def test_a_call_that_waits_for_its_token_until_the_deadline_is_never_sent(
    outside: Outside, paths: dict[str, Any]
) -> None:
    outside.held = {"/token"}
    error = result_in_a_batch(tool_of(outside, paths)).error
    assert error is not None
    assert (error.code, error.is_definite) == (ErrorCode.TIMEOUT, True)
    assert [each.target for each in outside.received] == ["/token"]


def test_the_outcome_of_a_write_without_a_response_is_unknown(outside: Outside) -> None:
    outside.held = {"/pets"}
    error = result_in_a_batch(tool_of(outside, WRITE)).error
    assert error is not None
    assert (error.code, error.is_definite) == (ErrorCode.TIMEOUT, False)
    assert [each.target for each in outside.received] == ["/token", "/pets"]


def test_a_read_is_retried_within_the_same_deadline(outside: Outside) -> None:
    tool = tool_of(outside, READ)
    assert result_in_a_batch(tool).success
    outside.held = {"/token"}
    outside.replies = [Reply(401)]
    error = result_in_a_batch(tool).error
    assert error is not None
    assert error.code is ErrorCode.TIMEOUT
    assert [each.target for each in outside.received] == ["/token", "/pets", "/pets", "/token"]


def test_a_call_past_its_deadline_is_not_sent(outside: Outside) -> None:
    made = outside.tool(WRITE)
    error = outside.call(
        OpenAPITool(made.operation, replace(made.connection, timeout_s=1e-9))
    ).error
    assert error is not None
    assert (error.code, error.is_definite, outside.received) == (ErrorCode.TIMEOUT, True, [])
