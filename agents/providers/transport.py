"""An HTTP transport whose reads end when the run is stopped or the deadline passes, even if a server sends slowly.

`tools.network` checks the addresses of new connections, as it does for tools.

A read waits in slices of a tenth of a second and checks the cancel scope of its thread in between. So there is no need
for a second thread, for closing a socket during a read, or for a timeout that every byte renews.
"""

import contextlib
import functools
import ssl
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator
from typing import Any

import httpcore2
import httpx2
from typing_extensions import override

from agents.providers.base import ProviderError, ProviderStopped
from tools.contract import ErrorCode, HostPort, NetworkAccess, PrivateHosts, ToolError
from tools.network import connect_to_any, resolve_host, resolve_with_system
from tools.network.addresses import Address

SLICE_S = 0.1
CONNECT_S = 10.0
WRITE_S = 20.0
MAX_IDLE_CONNECTIONS = 64
IDLE_S = 30.0
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
MAX_ANSWER_BYTES = 64 * 1024 * 1024
NEEDS_PERMISSION = "The owner of this installation can allow it with the setting ALLOWED_PRIVATE_HOSTS."

_thread = threading.local()


class CancelScope:
    """The time when a request must end: at `deadline` (a value of `time.monotonic()`), or once `stopped` is set."""

    def __init__(self, deadline: float, stopped: threading.Event) -> None:
        self.deadline = deadline
        self.stopped = stopped
        self._started_at = time.monotonic()

    def check(self) -> None:
        """Raise ProviderStopped, or ProviderError "timeout"."""
        if self.stopped.is_set():
            raise ProviderStopped
        if time.monotonic() >= self.deadline:
            waited = max(0.0, self.deadline - self._started_at)
            raise ProviderError(
                "timeout", f"The model's server did not finish its answer within {waited:.1f} s", transient=True
            )

    def remaining(self, at_most: float) -> float:
        """Return the seconds until the deadline, within bounds."""
        return max(0.001, min(at_most, self.deadline - time.monotonic()))

    def shorten(self, seconds: float) -> None:
        """Allow only this many seconds from now: the answer is complete, and only its end is missing."""
        self.deadline = min(self.deadline, time.monotonic() + seconds)

    def copy(self) -> "CancelScope":
        """Return a copy with the same limits, for another thread."""
        return CancelScope(self.deadline, self.stopped)

    def pause(self, seconds: float) -> None:
        """Wait without a connection; end at once when stopped."""
        self.stopped.wait(self.remaining(seconds))
        self.check()


@contextlib.contextmanager
def within(scope: CancelScope) -> Iterator[None]:
    """Apply the scope to everything that this thread reads during the block."""
    _thread.scope = scope
    try:
        yield
    finally:
        del _thread.scope


def _get_current_scope() -> CancelScope:
    scope: CancelScope = _thread.scope
    return scope


class _CancelableStream(httpcore2.NetworkStream):
    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner

    @override
    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        scope = _get_current_scope()
        while True:
            scope.check()
            try:
                return self._inner.read(max_bytes, scope.remaining(SLICE_S))
            except httpcore2.ReadTimeout:
                continue

    @override
    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _get_current_scope().remaining(WRITE_S))

    def close(self) -> None:
        self._inner.close()

    @override
    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        wait = _get_current_scope().remaining(CONNECT_S)
        return _CancelableStream(self._inner.start_tls(ssl_context, server_hostname, wait))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def explain_refusal(base_url: str, private_hosts: PrivateHosts, seconds: float) -> str:
    """Return the reason why this address is not allowed for models.

    It is empty if the address is allowed, or if its host is not found in this time.
    """
    url = httpx2.URL(base_url)
    try:
        with within(CancelScope(time.monotonic() + seconds, threading.Event())):
            _resolve_server(*_get_server(url), private_hosts)
    except ProviderError as error:
        return error.message if error.code == "bad_settings" else ""
    return ""


def _get_server(url: httpx2.URL) -> tuple[str, int]:
    return url.raw_host.decode("ascii"), url.port or (443 if url.scheme == "https" else 80)


class _GuardedBackend(httpcore2.NetworkBackend):
    """A backend that connects only to checked addresses, or to the proxy of the environment."""

    def __init__(self, private_hosts: PrivateHosts, *, is_proxied: bool) -> None:
        self._private_hosts = private_hosts
        self._is_proxied = is_proxied
        self._dial = httpcore2.SyncBackend()

    @override
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        scope = _get_current_scope()
        scope.check()
        if self._is_proxied:
            return _CancelableStream(self._dial.connect_tcp(host, port, scope.remaining(CONNECT_S)))
        addresses = _resolve_server(host, port, self._private_hosts)

        def get_remaining() -> float:
            scope.check()
            return scope.remaining(CONNECT_S)

        return _CancelableStream(connect_to_any(self._dial, addresses, port, get_remaining))


def _resolve_server(host: str, port: int, private_hosts: PrivateHosts) -> list[Address]:
    """Look up the host and check its addresses.

    Raises:
        ProviderError: the host does not exist or is not allowed.
    """
    host = host.removesuffix(".")
    network_access = NetworkAccess(requested=frozenset({host}), installation=private_hosts)
    try:
        return resolve_host(
            HostPort(host, port), network_access, resolve_with_system, _get_current_scope().remaining(CONNECT_S)
        )
    except ToolError as error:
        if error.code != ErrorCode.SECURITY_VIOLATION:
            message = f"Could not reach {host}: {error.message}"
            raise ProviderError("unreachable", message, transient=True) from error
        hint = f" {NEEDS_PERMISSION}" if error.message.endswith("a private address.") else ""
        raise ProviderError("bad_settings", f"{error.message}{hint}", transient=False) from error


@contextlib.contextmanager
def _translating_errors(address: str, answered: bool) -> Iterator[None]:
    """Translate network errors of the block into ProviderErrors that name the address."""
    try:
        yield
    except (httpcore2.ConnectError, httpcore2.ConnectTimeout, httpcore2.ProxyError) as error:
        reason = str(error) or "no answer to the connection attempt"
        has_wrong_certificate = "CERTIFICATE_VERIFY_FAILED" in reason
        raise ProviderError(
            "unreachable", f"Could not reach {address}: {reason}", transient=not has_wrong_certificate
        ) from error
    except httpcore2.UnsupportedProtocol as error:
        raise ProviderError("bad_settings", f"{address}: {error}", transient=False) from error
    except httpcore2.LocalProtocolError as error:
        raise ProviderError(
            "bad_settings", f"The request to {address} is not valid: {error}", transient=False
        ) from error
    except httpcore2.TimeoutException as error:
        raise ProviderError("timeout", f"{address} did not accept the request in time", transient=True) from error
    except (httpcore2.NetworkError, httpcore2.RemoteProtocolError) as error:
        if answered:
            raise ProviderError(
                "cut_stream", f"{address} closed the connection in the middle of its answer: {error}", transient=True
            ) from error
        raise ProviderError(
            "unreachable", f"{address} closed the connection without an answer: {error}", transient=True
        ) from error


class _AnswerBody(httpx2.SyncByteStream):
    def __init__(self, response: httpcore2.Response, address: str) -> None:
        self._response = response
        self._address = address

    def __iter__(self) -> Iterator[bytes]:
        received = 0
        with _translating_errors(self._address, answered=True):
            for part in self._response.iter_stream():
                received += len(part)
                if received > MAX_ANSWER_BYTES:
                    raise ProviderError(
                        "bad_answer", f"{self._address} sent more than {MAX_ANSWER_BYTES} bytes", transient=False
                    )
                yield part

    def close(self) -> None:
        self._response.close()


class GuardedTransport(httpx2.BaseTransport):
    """A transport with pooled connections; use it only inside `within(scope)`."""

    def __init__(self, base_url: str, private_hosts: PrivateHosts) -> None:
        proxy = _find_proxy(base_url)
        self._private_hosts = private_hosts
        self._is_proxied = proxy is not None
        self._pool = httpcore2.ConnectionPool(
            ssl_context=get_ssl_context(),
            proxy=proxy,
            max_connections=None,  # each thread uses one, and a thread that waits for one could not be stopped
            max_keepalive_connections=MAX_IDLE_CONNECTIONS,
            keepalive_expiry=IDLE_S,
            network_backend=_GuardedBackend(private_hosts, is_proxied=self._is_proxied),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        if self._is_proxied:
            self._check_behind_proxy(url)
        address = f"{url.scheme}://{url.netloc.decode('ascii')}"
        outgoing = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream if isinstance(request.stream, httpx2.SyncByteStream) else None,
            extensions=request.extensions,
        )
        with _translating_errors(address, answered=False):
            response = self._pool.handle_request(outgoing)
        return httpx2.Response(
            status_code=response.status,
            headers=response.headers,
            stream=_AnswerBody(response, address),
            extensions=response.extensions,
        )

    def _check_behind_proxy(self, url: httpx2.URL) -> None:
        """Refuse private servers behind a proxy too; names that only the proxy can look up are left to the proxy."""
        try:
            _resolve_server(*_get_server(url), self._private_hosts)
        except ProviderError as error:
            if error.code == "bad_settings":
                raise

    def close(self) -> None:
        self._pool.close()


@functools.cache
def get_ssl_context() -> ssl.SSLContext:
    """Return the context of all endpoints: reading the certificates takes a tenth of a second.

    Call it before the first threads start, because each of them would read the certificates.
    """
    return httpx2.create_ssl_context()


def _find_proxy(base_url: str) -> httpcore2.Proxy | None:
    """Return the proxy of the environment for this address (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY)."""
    target = urllib.parse.urlsplit(base_url)
    proxies = urllib.request.getproxies()
    address = proxies.get(target.scheme) or proxies.get("all")
    if not address or target.hostname in _LOOPBACK or urllib.request.proxy_bypass(target.netloc):
        return None
    proxy = urllib.parse.urlsplit(address if "//" in address else f"http://{address}")
    auth = (
        (urllib.parse.unquote(proxy.username), urllib.parse.unquote(proxy.password or "")) if proxy.username else None
    )
    return httpcore2.Proxy(url=f"{proxy.scheme}://{proxy.hostname}:{proxy.port or 80}", auth=auth)
