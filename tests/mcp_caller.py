"""A client in its own process, which can be killed: it calls a tool, then waits for its ticket.

`python -m tests.mcp_caller URL SECRET TOOL NAME`
"""

from __future__ import annotations

import sys
from typing import Any

import httpx2


def call(url: str, secret: str, tool: str, **params: Any) -> dict[str, Any]:
    """Call a tool in one request of the revision 2025-11-25, and return the response's result."""
    headers = {
        "Authorization": f"Bearer {secret}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
    }
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": params},
    }
    response = httpx2.post(f"{url}/mcp", json=body, headers=headers, timeout=60)
    text = response.text
    if text.startswith("event:"):
        text = next(
            line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")
        )
    result: dict[str, Any] = httpx2.Response(200, text=text).json()
    return result


def main() -> None:
    url, secret, tool, name = sys.argv[1:]
    structure = call(url, secret, tool, name=name)["result"].get("structuredContent") or {}
    if "ticket" in structure:
        call(url, secret, "gadget__ticket", ticket=structure["ticket"], wait_s=30)


if __name__ == "__main__":
    main()
