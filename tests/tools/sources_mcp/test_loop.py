"""The thread that serves all MCP servers reports a failure only to the caller that waits for it."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading

import pytest

from tools.sources.mcp.loop import LoopThread


async def failing() -> None:
    raise TimeoutError


def test_a_failure_is_passed_to_the_waiting_caller() -> None:
    with pytest.raises(TimeoutError):
        LoopThread().submit(failing()).result(10)


def test_a_failure_after_the_work_was_abandoned_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop, begun, ended = LoopThread(), threading.Event(), threading.Event()

    async def failing_when_cancelled() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.set()
            raise TimeoutError from None

    given_up = loop.submit(failing_when_cancelled())
    assert begun.wait(10)
    with caplog.at_level(logging.ERROR, "asyncio"):
        given_up.cancel()
        assert ended.wait(10)
        loop.submit(asyncio.sleep(0)).result(10)
        del given_up  # it refers to the task, which logs when it is garbage-collected
        gc.collect()
    assert not caplog.records
