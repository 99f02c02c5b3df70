"""A client program: REST with a token, and plain sockets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

PATIENCE_S = 30.0
FAREWELL_S = 1.0


@dataclass(frozen=True)
class Socket:
    """An open WebSocket."""

    connection: ClientConnection

    def next(self, seconds: float = PATIENCE_S) -> dict[str, Any]:
        """Receive the next message; raise TimeoutError if none arrives in time."""
        message: dict[str, Any] = json.loads(self.connection.recv(seconds))
        return message

    def receive_until(self, type_: str) -> list[dict[str, Any]]:
        """Receive all messages up to and including the first of this type."""
        heard = [self.next()]
        while heard[-1]["type"] != type_:
            heard.append(self.next())
        return heard

    def send(self, text: str | bytes) -> None:
        self.connection.send(text)

    def close_code(self) -> int | None:
        """Wait until the server closes this socket, and return the code."""
        try:
            while True:
                self.next()
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else None


@contextmanager
def open_socket(url: str, path: str, headers: dict[str, str], **options: Any) -> Iterator[Socket]:
    """Open a socket at this path, with these headers.

    Raises:
        websockets.exceptions.InvalidStatus: the server refused the handshake.
    """
    address = f"{url.replace('http', 'ws', 1)}{path}"
    settings = {"open_timeout": PATIENCE_S, "close_timeout": FAREWELL_S, "proxy": None, **options}
    with connect(address, additional_headers=headers, **settings) as connection:
        yield Socket(connection)


class ApiClient:
    """One person's REST calls and sockets, authenticated with an API token."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.headers = {"Authorization": f"Bearer {token}"}

    def get(self, path: str) -> Any:
        """Send a GET, and return the JSON of its response."""
        return self._request("GET", path).json()

    def post(self, path: str, body: dict[str, Any], status: int = 200) -> Any:
        """Send a POST, check the status of its response, and return its JSON."""
        response = self._request("POST", path, body)
        assert response.status_code == status, f"{path}: {response.status_code} {response.text}"
        return response.json()

    def post_for_status(self, path: str, body: dict[str, Any]) -> int:
        """Send a POST, and return the status of its response."""
        return self._request("POST", path, body).status_code

    def start(self, employee_id: int, task: str) -> int:
        """Start a run, and return its id."""
        return int(
            self.post("/runs", {"employee_id": str(employee_id), "task": task}, status=201)["id"]
        )

    def socket(self, run_id: int, after: int = 0, **options: Any) -> Any:
        """Return a context manager for the run's socket."""
        return open_socket(self.url, f"/ws/runs/{run_id}/?after={after}", self.headers, **options)

    def _request(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> httpx2.Response:
        return httpx2.request(
            method,
            f"{self.url}/api{path}",
            json=body,
            headers=self.headers,
            timeout=PATIENCE_S,
            trust_env=False,
        )


def select_events(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Select the messages that are events: streamed text has no number."""
    return [message for message in messages if message["seq"] is not None]
