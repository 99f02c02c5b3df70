"""A small name server over real UDP whose responses a test sets, and a resolver that queries it."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Self

A, AAAA = 1, 28
NO_SUCH_NAME = 3


class DnsServer:
    """A name server that responds to A and AAAA questions.

    Attributes:
        names: the responses for each name, in order, each a list of addresses; the last response is
            repeated.
        delay_s: the number of seconds before each response.
        asked: the names in all questions of type A, in order.
    """

    def __init__(self, **names: Sequence[str]) -> None:
        self.names: dict[str, list[Sequence[str]]] = {
            name: [response] for name, response in names.items()
        }
        self.delay_s = 0.0
        self.asked: list[str] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.sendto(b"", self._socket.getsockname())
        self._thread.join()
        self._socket.close()

    def resolve(self, host: str, seconds: float) -> Sequence[str]:
        """Resolve a name with this server. Tests pass this method to `tools.network.GuardedClient`
        as `resolve`."""
        ends_at = time.monotonic() + seconds
        return [
            address
            for kind in (A, AAAA)
            for address in self._ask(host, kind, ends_at - time.monotonic())
        ]

    def _ask(self, host: str, kind: int, seconds: float) -> list[str]:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.settimeout(max(0.001, seconds))
            question = b"".join(
                bytes([len(label)]) + label for label in host.encode("ascii").split(b".")
            )
            head = struct.pack(">6H", 7, 0x0100, 1, 0, 0, 0)
            asking.sendto(
                head + question + b"\0" + struct.pack(">2H", kind, 1), self._socket.getsockname()
            )
            response = asking.recv(4096)
        count = struct.unpack(">6H", response[:12])[3]
        place, found = 12 + len(question) + 1 + 4, []
        for _ in range(count):
            length = struct.unpack(">H", response[place + 10 : place + 12])[0]
            packed = response[place + 12 : place + 12 + length]
            found.append(str(ip_address(packed)))
            place += 12 + length
        return found

    def _serve(self) -> None:
        while True:
            data, client = self._socket.recvfrom(4096)
            if not data:
                return
            time.sleep(self.delay_s)
            self._socket.sendto(self._answer(data), client)

    def _answer(self, data: bytes) -> bytes:
        labels, place = [], 12
        while length := data[place]:
            labels.append(data[place + 1 : place + 1 + length].decode("ascii"))
            place += 1 + length
        name = ".".join(labels)
        kind = struct.unpack(">H", data[place + 1 : place + 3])[0]
        responses = self.names.get(name, [])
        if kind == A:
            self.asked.append(name)
        current = responses[0] if responses else ()
        if kind == AAAA and len(responses) > 1:
            responses.pop(0)
        fitting = [ip_address(text) for text in current]
        packed = [address.packed for address in fitting if (address.version == 6) == (kind == AAAA)]
        flags = 0x8180 | (0 if responses else NO_SUCH_NAME)
        head = data[:2] + struct.pack(">5H", flags, 1, len(packed), 0, 0)
        rows = b"".join(
            struct.pack(">3HIH", 0xC00C, kind, 1, 0, len(address)) + address for address in packed
        )
        return head + data[12 : place + 5] + rows
