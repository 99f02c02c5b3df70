"""A receiver of webhooks, which records the requests and sends the responses that a test sets."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks import Webhook as Verifier


@dataclass
class Received:
    """One request.

    Attributes:
        at: the wall-clock time at which the request arrived.
    """

    path: str
    headers: dict[str, str]
    body: bytes
    at: float = field(default_factory=time.time)

    @property
    def content(self) -> Any:
        return json.loads(self.body)

    @property
    def kind(self) -> str:
        return str(self.content["type"])

    @property
    def data(self) -> dict[str, Any]:
        return dict(self.content["data"])

    def verify(self, secret: str) -> None:
        """Check the signature, the age and the id as the standard's own library does."""
        Verifier(secret).verify(self.body, self.headers)


@dataclass
class Receiver:
    """A receiver with an address of its own.

    Attributes:
        status: the status of the next responses; 0 closes the connection without a response.
        location: the target of a redirect; if empty, there is none.
        retry_after: the Retry-After header of the responses; if empty, there is none.
        answer: the body of the responses.
    """

    url: str = ""
    status: int = 200
    location: str = ""
    retry_after: str = ""
    answer: bytes = b""
    received: list[Received] = field(default_factory=list)
    _open: threading.Event = field(default_factory=threading.Event)

    def hold(self) -> None:
        """Do not respond until released."""
        self._open.clear()

    def release(self) -> None:
        self._open.set()

    @property
    def kinds(self) -> list[str]:
        return [one.kind for one in self.received]


@contextmanager
def open_receiver() -> Iterator[Receiver]:
    """Open a receiver on this machine."""
    receiver = Receiver()
    receiver.release()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.received.append(Received(self.path, headers, body))
            receiver._open.wait(60)
            if not receiver.status:
                self.close_connection = True
                return
            self.send_response(receiver.status)
            if receiver.location:
                self.send_header("Location", receiver.location)
            if receiver.retry_after:
                self.send_header("Retry-After", receiver.retry_after)
            self.send_header("Content-Length", str(len(receiver.answer)))
            self.end_headers()
            self.wfile.write(receiver.answer)

        def log_message(self, *_: object) -> None:
            """Do not log anything."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        receiver.url = f"http://127.0.0.1:{server.server_port}/events"
        yield receiver
        receiver.release()
        server.shutdown()
