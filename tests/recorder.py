"""A small HTTP server that represents the outside world: it counts effects and can withhold its
replies."""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class Recorder:
    """`POST /?name=…&key=…` counts an effect, `GET /?name=…` only waits; a reply is withheld while
    its name is held."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._host = host
        self.effects: Counter[str] = Counter()
        self.arrivals: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._held: set[str] = set()
        self._server = _Server((host, 0), _Handler)
        self._server.recorder = self
        threading.Thread(
            target=self._server.serve_forever, args=(0.01,), name="recorder", daemon=True
        ).start()

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self._server.server_port}"

    def hold(self, name: str) -> None:
        """Withhold replies to this name from now on; effects are still counted."""
        with self._changed:
            self._held.add(name)

    def release(self, name: str) -> None:
        """Reply to all requests of this name, now and later."""
        with self._changed:
            self._held.discard(name)
            self._changed.notify_all()

    def reset(self) -> None:
        """Release all requests, and forget arrivals and effects."""
        with self._changed:
            self._held.clear()
            self.effects.clear()
            self.arrivals.clear()
            self._changed.notify_all()

    def await_arrival(self, name: str, count: int = 1, seconds: float = 30) -> None:
        """Wait until this number of requests of this name has arrived."""
        with self._changed:
            arrived = self._changed.wait_for(lambda: self.arrivals[name] >= count, seconds)
        assert arrived, f"{self.arrivals[name]} of {count} requests for {name!r} arrived"

    def arrive(self, name: str, effect_key: str) -> None:
        with self._changed:
            if effect_key:
                self.effects[effect_key] += 1
            self.arrivals[name] += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: name not in self._held, 120)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._held.clear()
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    recorder: Recorder

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that were killed before they got their reply."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._take()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._take()

    def _take(self) -> None:
        query = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
        server = self.server
        assert isinstance(server, _Server)
        server.recorder.arrive(query.get("name", ""), query.get("key", ""))
        body = json.dumps({"ok": True}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Do not log requests."""
