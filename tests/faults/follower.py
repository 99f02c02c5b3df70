"""A client that follows a run's socket over a real connection, and reconnects after the last event
that it received."""

from __future__ import annotations

import json
import threading
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect

from agents.accounts.membership import issue_token
from agents.accounts.models import Membership
from agents.runs.models import Run
from tests.processes import Installation

RECONNECT_S = 0.2
POLL_S = 0.5


class SocketOpener:
    """Opens sockets of the installation with an API token."""

    def __init__(self, installation: Installation, member: Membership) -> None:
        self._address = f"ws://127.0.0.1:{installation.port}/ws/runs"
        self._secret = issue_token(member, "sockets")[1]

    def open(self, run: Run, after: int = 0) -> ClientConnection:
        """Open a socket that sends the run's events after the one with the number `after`."""
        headers = {"Authorization": f"Bearer {self._secret}"}
        return connect(
            f"{self._address}/{run.pk}/?after={after}", additional_headers=headers, open_timeout=20
        )


class Follower:
    """Follows a run from its first event until it is stopped, and reconnects when the connection is
    lost."""

    def __init__(self, opener: SocketOpener, run: Run) -> None:
        self.messages: list[dict[str, Any]] = []
        self.connections = 0
        self._opener, self._run = opener, run
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="follower", daemon=True)

    def __enter__(self) -> Follower:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    @property
    def numbers(self) -> list[int]:
        """The numbers of the events, in order of arrival."""
        return [message["seq"] for message in self.messages if message["seq"] is not None]

    @property
    def types(self) -> list[str]:
        return [message["type"] for message in self.messages if message["seq"] is not None]

    def _follow(self) -> None:
        while not self._stopped.is_set():
            try:
                with self._opener.open(
                    self._run, self.numbers[-1] if self.numbers else 0
                ) as socket:
                    self.connections += 1
                    self._listen(socket)
            except (OSError, ConnectionClosed, InvalidHandshake, TimeoutError):
                self._stopped.wait(RECONNECT_S)

    def _listen(self, socket: ClientConnection) -> None:
        while not self._stopped.is_set():
            try:
                self.messages.append(json.loads(socket.recv(POLL_S)))
            except TimeoutError:
                continue


def next_event(socket: ClientConnection, seconds: float) -> dict[str, Any]:
    """Return the next numbered message.

    Raises:
        TimeoutError: no such message arrives in time.
    """
    while True:
        message: dict[str, Any] = json.loads(socket.recv(seconds))
        if message["seq"] is not None:
            return message
