"""The loop of the client programs in Python: each line of input names a call, and each line of
output is its result.

A program runs with its client's own Python, so it imports nothing from this repository except this
file.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

URL, SECRET = sys.argv[1:3]
HEADERS = {"Authorization": f"Bearer {SECRET}"}

ListTools = Callable[[], Awaitable[list[str]]]
CallTool = Callable[[str, dict[str, Any]], Awaitable[Any]]


async def serve(list_tools: ListTools, call_tool: CallTool) -> None:
    """Answer each line with the names of the tools, or with the text that the client passes to its
    model."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        asked = json.loads(line)
        if asked["tool"]:
            try:
                answer: Any = str(await call_tool(asked["tool"], asked["params"]))
            except Exception as error:
                answer = f"{type(error).__name__}: {error}"
        else:
            answer = await list_tools()
        print(json.dumps(answer), flush=True)
