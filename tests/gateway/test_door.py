"""The door of the MCP server in this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from concurrent.futures import wait
from typing import Any

import pytest

from agents.mcp_server import door
from agents.mcp_server.database import CALLS
from agents.mcp_server.door import LARGEST_BODY


@pytest.mark.django_db(transaction=True)
def test_slow_previews_keep_nobody_at_the_door() -> None:
    ended = threading.Event()
    previews = [CALLS.submit(ended.wait) for _ in range(CALLS._max_workers)]
    try:
        assert asyncio.run(asyncio.wait_for(door._find_caller("no key", None, ""), 20)) is None
    finally:
        ended.set()
        wait(previews)


def read(messages: Iterable[dict[str, Any]]) -> bytes:
    """Let the door read a body that comes in these messages."""
    left = iter(messages)

    async def receive() -> dict[str, Any]:
        return next(left)

    return asyncio.run(door._read_body(receive))


def test_a_body_in_parts_may_have_so_many_bytes_and_no_more() -> None:
    half = {"type": "http.request", "body": b"x" * (LARGEST_BODY // 2), "more_body": True}
    assert len(read([half, {**half, "more_body": False}])) == LARGEST_BODY
    with pytest.raises(door._Refusal) as refusal:
        read([half, half, {"type": "http.request", "body": b"x", "more_body": True}])
    assert refusal.value.status == 413


def test_a_body_that_is_cut_off_is_not_read_as_whole() -> None:
    with pytest.raises(door._Refusal) as refusal:
        read([{"type": "http.request", "body": b"{}", "more_body": True}, {"type": "http.disconnect"}])
    assert refusal.value.status == 400
