"""An HTTP API on loopback that describes itself at `/openapi.json`, and records all other requests
unchanged."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

NAME = {"type": "string", "description": "Of the contact"}


@dataclass(frozen=True)
class Request:
    """A received request; requests for the description are not recorded."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Api:
    """An API to list and add contacts; its description is built from `paths`, which may change
    at any time."""

    def __init__(self) -> None:
        self.received: list[Request] = []
        self.paths: dict[str, Any] = {
            "/contacts": {
                "get": operation("listContacts", "List all contacts"),
                "post": operation("addContact", "Add a contact", name=NAME),
            }
        }
        self.title = "Contacts"
        self.answer: dict[str, Any] = {"ok": True}
        self.status = 200
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.api = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), name="api", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def description_url(self) -> str:
        return f"{self.url}/openapi.json"

    def document(self) -> str:
        return json.dumps(
            {"openapi": "3.1.0", "info": {"title": self.title, "version": "1"}, "paths": self.paths}
        )

    def reply(self, request: Request) -> bytes:
        if request.path == "/openapi.json":
            return self.document().encode()
        self.received.append(request)
        return json.dumps(self.answer).encode()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def operation(operation_id: str, summary: str = "", /, **fields: Any) -> dict[str, Any]:
    """Describe an operation. If there are fields, it has a JSON body in which all these fields are
    required."""
    made: dict[str, Any] = {
        "operationId": operation_id,
        "summary": summary or operation_id,
        "responses": {},
    }
    if fields:
        schema = {"type": "object", "properties": fields, "required": list(fields)}
        made["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema}},
        }
    return made


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    api: Api


class _Handler(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        assert isinstance(self.server, _Server)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        content = self.server.api.reply(Request(self.command, self.path, headers, body))
        is_call = self.path != "/openapi.json"
        self.send_response(self.server.api.status if is_call else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - the server's names

    def log_message(self, *_: object) -> None:
        """Do not log requests; tests read the received requests instead."""
