"""Programs that use Gadget from outside: REST with a token, and sockets as they are."""

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
    """An open WebSocket, and what it says."""

    connection: ClientConnection

    def next(self, seconds: float = PATIENCE_S) -> dict[str, Any]:
        """The next message; TimeoutError if none comes in time."""
        message: dict[str, Any] = json.loads(self.connection.recv(seconds))
        return message

    def until(self, type_: str) -> list[dict[str, Any]]:
        """All messages up to and with the first of this type."""
        heard = [self.next()]
        while heard[-1]["type"] != type_:
            heard.append(self.next())
        return heard

    def say(self, text: str | bytes) -> None:
        self.connection.send(text)

    def close_code(self) -> int | None:
        """The code with which the server closes this socket, whatever it says before."""
        try:
            while True:
                self.next()
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else None


@contextmanager
def opened(url: str, path: str, headers: dict[str, str], **options: Any) -> Iterator[Socket]:
    """A socket at this path, with these headers.

    Raises:
        websockets.exceptions.InvalidStatus: the server refused the handshake.
    """
    address = f"{url.replace('http', 'ws', 1)}{path}"
    settings = {"open_timeout": PATIENCE_S, "close_timeout": FAREWELL_S, "proxy": None, **options}
    with connect(address, additional_headers=headers, **settings) as connection:
        yield Socket(connection)


class Outside:
    """REST calls and sockets of one person, by API token."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.headers = {"Authorization": f"Bearer {token}"}

    def get(self, path: str) -> Any:
        """The JSON of a GET that succeeds."""
        return self._asked("GET", path).json()

    def post(self, path: str, body: dict[str, Any], status: int = 200) -> Any:
        """The JSON of a POST that is answered with this status."""
        answer = self._asked("POST", path, body)
        assert answer.status_code == status, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()

    def status_of(self, path: str, body: dict[str, Any]) -> int:
        """How a POST is answered."""
        return self._asked("POST", path, body).status_code

    def start(self, employee_id: int, task: str) -> int:
        """A new run; its id."""
        return int(self.post("/runs", {"employee_id": str(employee_id), "task": task}, status=201)["id"])

    def socket(self, run_id: int, after: int = 0, **options: Any) -> Any:
        """The run's socket, as a context manager."""
        return opened(self.url, f"/ws/runs/{run_id}/?after={after}", self.headers, **options)

    def _asked(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx2.Response:
        return httpx2.request(
            method, f"{self.url}/api{path}", json=body, headers=self.headers, timeout=PATIENCE_S, trust_env=False
        )


def numbered(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Only the events with a number: streamed text has none."""
    return [message for message in messages if message["seq"] is not None]
