"""A model server that is as strict about tools' names as the strictest known servers, for names
with an assistant's prefix."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import httpx2

LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PREFIX = "mcp__gadget_eu__"
"""The prefix of each tool's name; an assistant forms it from its name for the server."""


class StrictModel:
    """A model server that refuses requests with invalid or duplicate tool names; it then returns
    400 and the reasons."""

    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def offer(self, names: Sequence[str]) -> httpx2.Response:
        """Offer tools with these names to the model, as an assistant does."""
        schema = {"type": "object", "properties": {}}
        tools = [
            {"name": PREFIX + name, "description": name, "input_schema": schema} for name in names
        ]
        body = {
            "model": "strict",
            "max_tokens": 1,
            "messages": [{"role": "user", "content": "Hi"}],
            "tools": tools,
        }
        return httpx2.post(
            f"http://127.0.0.1:{self._server.server_port}/v1/messages", json=body, timeout=20
        )


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        tools = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["tools"]
        names = [tool["name"] for tool in tools]
        problems = [
            f"tools.{number}.name"
            for number, name in enumerate(names)
            if not LEGAL_NAME.fullmatch(name)
        ]
        if len(set(names)) < len(names):
            problems.append("tools: Tool names must be unique.")
        self._answer(400 if problems else 200, {"error": problems} if problems else {"content": []})

    def _answer(self, status: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Do not log requests."""
