"""A TCP proxy in front of PostgreSQL that can stop forwarding: connections stay open, but data no
longer passes through them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from django.db import connection

DEFAULT_PORT = "5432"
PART = 65536


class SilentProxy:
    """Forwards connections to the tests' PostgreSQL server; between `silence()` and `resume()`, it
    does not forward data."""

    def __init__(self, port: int = 0) -> None:
        self._passes = threading.Event()
        self._passes.set()
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port = int(self._listener.getsockname()[1])
        self._sockets: list[socket.socket] = [self._listener]
        self._start(self._accept)

    @property
    def database_url(self) -> str:
        """The address of the test database through this proxy."""
        found = connection.settings_dict
        login = quote(found["USER"], safe="") + (
            ":" + quote(found["PASSWORD"], safe="") if found["PASSWORD"] else ""
        )
        return f"postgresql://{login}@127.0.0.1:{self.port}/{found['NAME']}"

    def silence(self) -> None:
        self._passes.clear()

    def resume(self) -> None:
        self._passes.set()

    def close(self) -> None:
        """End every connection, and stop accepting new ones."""
        self._passes.set()
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = _connect()
            self._sockets += [client, server]
            self._start(lambda a=client, b=server: self._forward(a, b))  # type: ignore[misc]
            self._start(lambda a=server, b=client: self._forward(a, b))  # type: ignore[misc]

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(PART):
                self._passes.wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def _start(self, work: Callable[[], None]) -> None:
        threading.Thread(target=work, name="silent-proxy", daemon=True).start()


def _connect() -> socket.socket:
    """Connect to the server of the tests, over its Unix socket or TCP."""
    host, port = connection.settings_dict["HOST"], connection.settings_dict["PORT"] or DEFAULT_PORT
    if not host.startswith("/"):
        return socket.create_connection((host, int(port)))
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.connect(str(Path(host) / f".s.PGSQL.{port}"))
    return server
