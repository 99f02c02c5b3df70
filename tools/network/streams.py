"""Connections of the guarded client: pinned to a checked address, bounded in time and size."""

import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import httpcore2
from typing_extensions import override

from tools.network.addresses import Address
from tools.network.errors import response_too_large


class RequestTimer:
    """A countdown for one request with all of its redirects."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends_at = time.monotonic() + seconds

    def remaining(self, at_most: float | None = None) -> float:
        """Return the seconds that a step may take.

        Raises:
            httpcore2.ReadTimeout: no time is left.
        """
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout
        return left if at_most is None else min(left, at_most)


class Traffic:
    """The traffic of one connection, and its limit.

    Attributes:
        sent: True once a byte of the request may have left.
        received: bytes.
        most: bytes that may be read; grows after the response's head.
        reading: the part that is being read, for error messages.
        before_sending: called before the first byte leaves; an exception stops the request.
    """

    def __init__(self, host: str, most: int, before_sending: Callable[[], None] = lambda: None) -> None:
        self.host = host
        self.most = most
        self.before_sending = before_sending
        self.reading = "head of the response"
        self.sent = False
        self.received = 0


class GuardedStream(httpcore2.NetworkStream):
    """A stream that bounds the time of each read and write, and the bytes received."""

    def __init__(self, inner: httpcore2.NetworkStream, timer: RequestTimer, traffic: Traffic) -> None:
        self._inner = inner
        self._timer = timer
        self._traffic = traffic

    @override
    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        traffic = self._traffic
        if traffic.received >= traffic.most:
            raise response_too_large(traffic.host, traffic.reading, traffic.most)
        data = self._inner.read(max_bytes, self._timer.remaining(timeout))
        traffic.received += len(data)
        return data

    @override
    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        left = self._timer.remaining(timeout)
        if not self._traffic.sent:
            self._traffic.before_sending()
            self._traffic.sent = True
        self._inner.write(buffer, left)

    @override
    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        inner = self._inner.start_tls(ssl_context, server_hostname, self._timer.remaining(timeout))
        return GuardedStream(inner, self._timer, self._traffic)

    @override
    def close(self) -> None:
        self._inner.close()

    @override
    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class PinnedBackend(httpcore2.NetworkBackend):
    """A network backend that connects to checked addresses only, even if DNS has changed; TLS still checks the name.

    Args:
        dial: opens the connections.
        addresses: tried in this order; each gets an equal share of the remaining time.
    """

    def __init__(
        self, dial: httpcore2.NetworkBackend, addresses: list[Address], timer: RequestTimer, traffic: Traffic
    ) -> None:
        self._dial = dial
        self._addresses = addresses
        self._timer = timer
        self._traffic = traffic

    @override
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        stream = connect_to_any(self._dial, self._addresses, port, lambda: self._timer.remaining(timeout))
        return GuardedStream(stream, self._timer, self._traffic)


def connect_to_any(
    dial: httpcore2.NetworkBackend, addresses: Sequence[Address], port: int, remaining: Callable[[], float]
) -> httpcore2.NetworkStream:
    """Connect to the first address that accepts; each try gets an equal share of the remaining time.

    Args:
        addresses: at least one; all were checked.
        remaining: returns the seconds that are left, and raises if there are none.
    """
    for left in range(len(addresses), 1, -1):
        try:
            return dial.connect_tcp(str(addresses[-left]), port, remaining() / left)
        except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
            continue
    return dial.connect_tcp(str(addresses[-1]), port, remaining())
