"""A small server that responds to the hook as Gadget does, or incorrectly if a test wants that."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from django.conf import settings

HOOK = settings.BASE_DIR / "static" / "clients" / "gadget_hook.py"
URL = "https://gadget.example.com/approvals/7/"


class AskServer:
    """The state of the server: one ask, and all received requests.

    Attributes:
        statuses: the status of the ask in each of the next responses; the last status is repeated.
        wrong: fields to replace in every response about the ask.
        redemptions: the responses to the next redemptions: the HTTP status and the status of the
            ask for each.
        cancelled: the status of the ask after a request to cancel it.
        file, file_status: the hook's file that is served, and the HTTP status of that response.
        sent: the method, path with query, and body of each received request.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.statuses = ["waiting"]
        self.wrong: dict[str, Any] = {}
        self.redemptions = [(200, "redeemed"), (409, "redeemed")]
        self.cancelled = "cancelled"
        self.file, self.file_status = HOOK.read_bytes(), 200
        self.sent: list[tuple[str, str, Any]] = []
        self._asked: dict[str, Any] = {}

    @property
    def paths(self) -> list[str]:
        return [f"{method} {path.partition('?')[0]}" for method, path, _ in self.sent]

    def answer(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        self.sent.append((method, path, body))
        if path.endswith("gadget_hook.py"):
            return self.file_status, self.file
        if path.endswith("/redeem"):
            code, status = self.redemptions.pop(0)
            return code, json.dumps(
                {"detail": "Redeemed before."} if code != 200 else self._describe(status)
            ).encode()
        if path.endswith("/cancel"):
            return 200, json.dumps(self._describe(self.cancelled)).encode()
        if path.endswith("/outcome"):
            return 200, b"{}"
        if path.startswith("/api/asks?"):
            items = [self._describe(self.statuses[0])] if self.statuses else []
            return 200, json.dumps({"items": items}).encode()
        if method == "POST":
            self._asked = body
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return 200, json.dumps(self._describe(status)).encode()

    def _describe(self, status: str) -> dict[str, Any]:
        params = json.dumps(
            self._asked.get("params"), sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        answer = {
            "id": "7",
            "status": status,
            "action": self._asked.get("action"),
            "params_digest": hashlib.sha256(params.encode()).hexdigest(),
            "url": URL,
            "decided_by": "ada" if status in ("approved", "denied") else "",
            "reason": "",
            "receipt": "signed" if status == "approved" else None,
            "params": self._asked.get("params"),
        }
        return answer | self.wrong


@contextmanager
def serve_asks() -> Iterator[AskServer]:
    """Serve one ask until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            code, content = found.answer(
                self.command, self.path, json.loads(body) if body else None
            )
            self.send_response(code)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = answer  # noqa: N815 - the names of the library

        def log_message(self, *_: object) -> None:
            """Do not log requests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = AskServer(f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield found
        server.shutdown()
