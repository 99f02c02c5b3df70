"""The main loop of the client programs in Python: each line of input requests a call or the list of
tools, and each line of output is the result.

A program runs in its client's own Python environment, so this file is the only one that it can
import from this repository.
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
    """Print, for each line of input, the result of the requested call as the client passes it to
    its model, or the names of the tools."""
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
