"""An MCP server that speaks an older revision of the protocol over streamable HTTP, in a thread,
and misbehaves at certain paths."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOOL = {"name": "save", "inputSchema": {"type": "object"}}
REDIRECTS = {
    "moves": (307, "http://127.0.0.1:1/mcp"),
    "moves_to_itself": (307, "/moves_to_itself"),
    "moves_within": (308, "/works"),
    "did_and_moves": (302, "/works"),
    "did_and_shows": (303, "/works"),
}
"""Responses to a call: status and Location."""

ERRORS = {
    "fails_inside": ("Internal error", -32603),
    "locked": ("Account is locked", -32000),
    "unknown_tool": ("No such tool", -32601),
    "bad_params": ("Wrong params", -32602),
}
"""Error objects, by the last part of the address."""
LOCKED = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "Account is locked"}}
BODIES: dict[str, tuple[int, str, Any]] = {
    "locked_with_400": (400, "application/json", LOCKED),
    "locked_in_a_stream": (
        200,
        "text/event-stream",
        f"event: message\ndata: {json.dumps(LOCKED)}\n\n",
    ),
    "error_as_text": (200, "application/json", {"error": "Account is locked"}),
    "plain_json": (200, "application/json", {"detail": "Account is locked"}),
    "says_502": (502, "text/plain", "The ledger is closed."),
    "says_401": (401, "application/json", {"error_description": "The ledger is closed."}),
    "says_422": (
        422,
        "application/json",
        {"detail": [{"msg": "x"}], "message": "The ledger is closed."},
    ),
    "result_without_envelope_parts": (
        200,
        "application/json",
        {"result": {"content": [{"type": "text", "text": "saved"}]}},
    ),
    "result_is_text": (200, "application/json", {"jsonrpc": "2.0", "id": 2, "result": "saved"}),
}
"""Complete responses to a call: status, media type, body."""


class OlderServer(ThreadingHTTPServer):
    """An MCP server that responds to `tools/call` in the way that the last part of its address
    names. It records all requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.refused = threading.Event()
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []

    def url(self, behavior: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{behavior}"

    def calls(self) -> int:
        return sum(message.get("method") == "tools/call" for _, _, message in self.asked)


@contextmanager
def older_server() -> Iterator[OlderServer]:
    """Serve an older server during the block."""
    server = OlderServer()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: OlderServer

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(
            (self.path, {key.lower(): value for key, value in self.headers.items()}, message)
        )
        method, behavior = message.get("method"), self.path.strip("/")
        if behavior.isdigit() or behavior == "away":
            self._send(
                int(behavior) if behavior.isdigit() else 307, {"Location": "http://127.0.0.1:1/mcp"}
            )
        elif method == "initialize":
            known = {"protocolVersion": "2025-03-26", "capabilities": {"tools": {}}}
            self._say(
                message,
                {**known, "serverInfo": {"name": "older", "version": "1"}},
                {"Mcp-Session-Id": "s-1"},
            )
        elif method == "tools/list":
            self._list(message, behavior)
        elif method == "tools/call":
            self._call(message, behavior)
        elif "id" in message:
            self._send(400, {})
            self.server.refused.set()
        else:
            self._send(202, {})

    def do_GET(self) -> None:
        self._send(405, {})

    def do_DELETE(self) -> None:
        self._send(200, {})

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Do not log requests."""

    def _list(self, message: dict[str, Any], behavior: str) -> None:
        told = self.headers.get("Authorization", "")
        if behavior == "refuses":
            self._fail(message, f"nothing for {told}")
        elif behavior == "echoes":
            named = {"name": told.rpartition(" ")[2], "inputSchema": {"type": "object"}}
            self._say(
                message,
                {"tools": [{**TOOL, "title": told, "description": f"Saves for {told}"}, named]},
            )
        else:
            self._say(message, {"tools": [TOOL]})

    def _fail(self, message: dict[str, Any], text: str, code: int = -32000) -> None:
        error = {"code": code, "message": text}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
        self._send(200, {"Content-Type": "application/json"}, body)

    def _call(self, message: dict[str, Any], behavior: str) -> None:
        if behavior == "breaks":
            self.close_connection = True
        elif behavior == "hangs":
            time.sleep(30)
        elif behavior == "fails":
            self._send(502, {})
        elif behavior == "huge":
            self._say(message, {"content": [{"type": "text", "text": "x" * 50_000_000}]})
        elif behavior == "nonsense":
            self._send(200, {"Content-Type": "application/json"}, b"<html>")
        elif behavior == "accepts":
            self._send(202, {})
        elif behavior == "asks":
            self._ask_back()
        elif behavior in REDIRECTS:
            status, place = REDIRECTS[behavior]
            self._send(status, {"Location": place})
        elif behavior == "times_out":
            self._send(408, {})
        elif behavior in ERRORS:
            self._fail(message, *ERRORS[behavior])
        elif behavior in BODIES:
            status, media_type, body = BODIES[behavior]
            text = body if isinstance(body, str) else json.dumps(body)
            self._send(
                status,
                {"Content-Type": media_type},
                text.replace("ID", str(message["id"])).encode(),
            )
        else:
            told = self.headers.get("Authorization", "")
            self._say(message, {"content": [{"type": "text", "text": f"saved for {told}"}]})

    def _ask_back(self) -> None:
        """Begin a response that asks the client for a completion, refuse the client's reply with
        400, and break off the response."""
        asked = {"jsonrpc": "2.0", "id": "s1", "method": "sampling/createMessage"}
        told = json.dumps({**asked, "params": {"messages": [], "maxTokens": 1}})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(f"event: message\ndata: {told}\n\n".encode())
        self.wfile.flush()
        self.server.refused.wait(10)
        time.sleep(0.2)  # gives the client time to receive the 400
        self.close_connection = True

    def _say(
        self, message: dict[str, Any], result: dict[str, Any], headers: dict[str, str] | None = None
    ) -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        self._send(200, {"Content-Type": "application/json", **(headers or {})}, body)

    def _send(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        try:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            self.close_connection = True
