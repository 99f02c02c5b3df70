"""The door of the MCP server in this process."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import wait

import pytest

from agents.mcp_server import door
from agents.mcp_server.database import CALLS


@pytest.mark.django_db(transaction=True)
def test_slow_previews_keep_nobody_at_the_door() -> None:
    ended = threading.Event()
    previews = [CALLS.submit(ended.wait) for _ in range(CALLS._max_workers)]
    try:
        assert asyncio.run(asyncio.wait_for(door._find_caller("no key", None, ""), 20)) is None
    finally:
        ended.set()
        wait(previews)
