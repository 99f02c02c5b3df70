"""Guarded synchronous connections for models and tools, with limits on addresses, time and bytes.

A connection obeys the guard of the request that its thread is sending, because a pooled connection
outlives a request.
"""

import functools
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpcore2
import httpx2
from typing_extensions import override

from tools.contract import ErrorCode, HostPort, NetworkAccess, ToolError
from tools.network.addresses import Address
from tools.network.errors import response_too_large
from tools.network.name_resolution import Resolver, resolve_host, resolve_with_system

SLICE_S = 0.1
"""The maximum wait, in seconds, before a read checks again whether its request must end."""
FRAMING = 8
"""The allowed ratio of bytes on the wire to bytes of content: some servers send byte by byte."""

_thread = threading.local()


class RequestGuard:
    """The limits of one request, and its progress. A subclass may check more than the deadline.

    Attributes:
        deadline: the value of `time.monotonic()` at which the request must end.
        most: the maximum number of bytes to receive; the caller may raise it after reading the
            response's headers.
        before_sending: called before the first byte is sent; an exception stops the request.
        reading: the part that is being read, for error messages.
        sent: True once a byte of the request may have been sent.
        received: bytes received so far.
    """

    def __init__(
        self, deadline: float, most: int, before_sending: Callable[[], None] = lambda: None
    ) -> None:
        self.deadline = deadline
        self.most = most
        self.before_sending = before_sending
        self.reading = "head of the response"
        self.sent = False
        self.received = 0

    def check(self) -> None:
        """Raise `httpcore2.ReadTimeout` once the request must end."""
        if time.monotonic() >= self.deadline:
            raise httpcore2.ReadTimeout

    def remaining(self, at_most: float | None = None) -> float:
        """Check the guard, and return the seconds that the next step may take."""
        self.check()
        left = max(0.001, self.deadline - time.monotonic())
        return left if at_most is None else min(left, at_most)


@contextmanager
def within(guard: RequestGuard) -> Iterator[None]:
    """Apply the guard to everything that this thread sends and reads during the block."""
    outer = getattr(_thread, "guard", None)
    _thread.guard = guard
    try:
        yield
    finally:
        _thread.guard = outer


def _get_guard() -> RequestGuard:
    guard: RequestGuard = _thread.guard
    return guard


class _GuardedStream(httpcore2.NetworkStream):
    """A stream that limits the received bytes and the time of each step. For a read, only the guard
    limits the time."""

    def __init__(self, inner: httpcore2.NetworkStream, host: str) -> None:
        self._inner = inner
        self._host = host

    @override
    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        guard = _get_guard()
        if guard.received >= guard.most:
            raise response_too_large(self._host, guard.reading, guard.most)
        while True:
            wait_s = guard.remaining(SLICE_S)
            try:
                data = self._inner.read(max_bytes, wait_s)
            except httpcore2.ReadTimeout:
                continue
            guard.received += len(data)
            return data

    @override
    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        guard = _get_guard()
        left = guard.remaining(timeout)
        if not guard.sent:
            guard.before_sending()
            guard.sent = True
        self._inner.write(buffer, left)

    @override
    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        inner = self._inner.start_tls(ssl_context, server_hostname, _get_guard().remaining(timeout))
        return _GuardedStream(inner, self._host)

    @override
    def close(self) -> None:
        self._inner.close()

    @override
    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


@dataclass(frozen=True)
class GuardedBackend(httpcore2.NetworkBackend):
    """A network backend that checks the server of each connection; use it inside `within(guard)`.

    Each new connection looks up its server and uses the checked addresses, even if DNS has changed
    since; TLS still checks the name.

    Attributes:
        resolve: returns the addresses of a host name.
        dial: opens connections to given addresses.
        look_up_s: seconds for a lookup, within the time of the request.
        proxy: all connections go to it, and it is not checked; `check_behind_proxy` checks the
            servers behind it.
    """

    reach: NetworkAccess
    resolve: Resolver = resolve_with_system
    dial: httpcore2.NetworkBackend = field(default_factory=httpcore2.SyncBackend)
    look_up_s: float | None = None
    proxy: HostPort | None = None

    def look_up(self, host: str, port: int, seconds: float | None = None) -> list[Address]:
        """Return at least one address of the server, after checking all of them; without `seconds`,
        a guard must be active.

        Raises:
            ToolError: SECURITY_VIOLATION, NETWORK_ERROR or TIMEOUT; nothing was sent.
        """
        server = HostPort(host.removesuffix("."), port)
        left = _get_guard().remaining(self.look_up_s) if seconds is None else seconds
        return resolve_host(server, self.reach, self.resolve, left)

    def check_behind_proxy(self, host: str, port: int) -> None:
        """Refuse private servers behind the proxy, too, but not names that only the proxy can look
        up.

        Raises:
            ToolError: SECURITY_VIOLATION
        """
        try:
            if self.proxy:
                self.look_up(host, port)
        except ToolError as error:
            if error.code is ErrorCode.SECURITY_VIOLATION:
                raise

    @override
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        addresses = [host] if (host, port) == self.proxy else self.look_up(host, port)
        remaining = functools.partial(_get_guard().remaining, timeout)
        return _GuardedStream(_connect_to_any(self.dial, addresses, port, remaining), host)


def _connect_to_any(
    dial: httpcore2.NetworkBackend,
    addresses: Sequence[Address | str],
    port: int,
    remaining: Callable[[], float],
) -> httpcore2.NetworkStream:
    """Connect to the first address that accepts; each try gets an equal share of the time left."""
    for left in range(len(addresses), 1, -1):
        try:
            return dial.connect_tcp(str(addresses[-left]), port, remaining() / left)
        except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
            continue
    return dial.connect_tcp(str(addresses[-1]), port, remaining())


class LimitedBody(httpx2.SyncByteStream):
    """The content of a response as sent; raises a ToolError, LIMIT_EXCEEDED, if it is too large."""

    def __init__(self, incoming: httpcore2.Response, host: str, most: int) -> None:
        self._incoming = incoming
        self._host = host
        self._most = most

    @override
    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for part in self._incoming.iter_stream():
            size += len(part)
            if size > self._most:
                raise response_too_large(self._host, "response", self._most)
            yield part

    @override
    def close(self) -> None:
        self._incoming.close()


@functools.cache
def load_system_trust() -> ssl.SSLContext:
    """Load the system's certificates once per process; this takes as long as a hundred requests.

    Call it before the first threads start; otherwise, each of them would load the certificates.
    """
    return httpcore2.default_ssl_context()
