"""The HTTP transport for model servers: pooled connections, through the environment's proxy if
there is one, with the guards of `tools.network.transport`.

A read checks the cancel scope of its thread ten times a second, so it ends when the run is stopped
or the deadline passes, even if a server sends slowly. So no second thread is needed, and the socket
need not be closed during a read.
"""

import math
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import httpcore2
import httpx2
from typing_extensions import override

from agents.providers.base import ProviderError, ProviderStopped
from agents.providers.connection_errors import describe_connect_error, describe_early_end
from tools.contract import ErrorCode, HostPort, NetworkAccess, PrivateHosts, ToolError
from tools.contract.correlation import build_correlation_headers
from tools.network.transport import (
    FRAMING,
    GuardedBackend,
    LimitedBody,
    RequestGuard,
    load_system_trust,
)
from tools.network.urls import get_host, get_port

CONNECT_S = 10.0
WRITE_S = 20.0
MAX_IDLE_CONNECTIONS = 64
IDLE_S = 30.0
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
MAX_RESPONSE_BYTES = 64 * 1024 * 1024
NEEDS_PERMISSION = (
    "The owner of this installation can allow it with the setting ALLOWED_PRIVATE_HOSTS."
)


class CancelScope(RequestGuard):
    """The guard of a provider's requests, which end at the deadline, after a silence, or once
    `stopped` is set.

    The attribute `deadline` is the moment at which the request ends unless more of the response
    arrives.
    """

    def __init__(self, deadline: float, stopped: threading.Event) -> None:
        super().__init__(deadline, most=MAX_RESPONSE_BYTES * FRAMING)
        self.stopped = stopped
        self._last_moment = deadline
        self._silence_s: float | None = None
        self._started_at = time.monotonic()

    def limit_silence(self, seconds: float | None) -> None:
        """Allow this many seconds without a new part of the response, beginning now; None removes
        the limit."""
        self._silence_s = seconds
        self.note_content()

    def note_content(self) -> None:
        """Record that a part of the response has arrived; data that only keeps the connection alive
        is ignored."""
        silent_until = math.inf if self._silence_s is None else time.monotonic() + self._silence_s
        self.deadline = min(self._last_moment, silent_until)

    @override
    def check(self) -> None:
        """Raise ProviderStopped if `stopped` is set, and ProviderError "timeout" after the
        deadline."""
        if self.stopped.is_set():
            raise ProviderStopped
        if time.monotonic() >= self.deadline:
            raise ProviderError("timeout", self._describe_end(), transient=True)

    def shorten(self, seconds: float) -> None:
        """Allow at most this many seconds from now, because the response is complete except for its
        end."""
        self._last_moment = min(self._last_moment, time.monotonic() + seconds)
        self.deadline = min(self.deadline, self._last_moment)

    def _describe_end(self) -> str:
        if self.deadline < self._last_moment and self._silence_s is not None:
            return f"The model's server sent nothing more for {self._silence_s:.1f} s"
        waited = max(0.0, self.deadline - self._started_at)
        return f"The model's server did not finish its response within {waited:.1f} s"

    def copy(self) -> "CancelScope":
        """Return a scope for another thread, with the same deadline and the same `stopped`."""
        return CancelScope(self.deadline, self.stopped)

    def pause(self, seconds: float) -> None:
        """Wait for these seconds, but at most until the deadline or a stop; then `check`."""
        self.stopped.wait(self.remaining(seconds))
        self.check()


def explain_refusal(base_url: str, private_hosts: PrivateHosts, seconds: float) -> str | None:
    """Return the reason why this address is not allowed for models; None if it is allowed, or if
    its host is not found within `seconds`."""
    url = httpx2.URL(base_url)
    try:
        _build_backend(url, private_hosts).look_up(get_host(url), get_port(url), seconds)
    except ToolError as error:
        return _explain(error) if error.code is ErrorCode.SECURITY_VIOLATION else None
    return None


def _explain(refusal: ToolError) -> str:
    is_private = refusal.message.endswith("a private address.")
    return f"{refusal.message} {NEEDS_PERMISSION}" if is_private else refusal.message


def _build_backend(
    url: httpx2.URL, private_hosts: PrivateHosts, proxy: httpcore2.Proxy | None = None
) -> GuardedBackend:
    reach = NetworkAccess(
        requested=frozenset({get_host(url).removesuffix(".")}), installation=private_hosts
    )
    proxy_server = HostPort(proxy.url.host.decode("ascii"), proxy.url.port or 80) if proxy else None
    return GuardedBackend(reach, look_up_s=CONNECT_S, proxy=proxy_server)


@contextmanager
def _translating_errors(url: httpx2.URL, responded: bool) -> Iterator[None]:
    """Translate errors of the guard and the network into ProviderErrors that name the address."""
    address = f"{url.scheme}://{url.netloc.decode('ascii')}"
    try:
        yield
    except ToolError as error:
        if error.code is ErrorCode.SECURITY_VIOLATION:
            raise ProviderError("bad_settings", _explain(error), transient=False) from error
        if error.code is ErrorCode.LIMIT_EXCEEDED:
            message = f"{address} sent more than {MAX_RESPONSE_BYTES} bytes"
            raise ProviderError("bad_answer", message, transient=False) from error
        host = get_host(url).removesuffix(".")
        message = f"Could not reach {host}: {error.message.rstrip('.')}. Check the spelling of the address"
        raise ProviderError("unreachable", message, transient=True) from error
    except (httpcore2.ConnectError, httpcore2.ConnectTimeout, httpcore2.ProxyError) as error:
        has_wrong_certificate = "CERTIFICATE_VERIFY_FAILED" in str(error)
        message = describe_connect_error(url, error)
        raise ProviderError("unreachable", message, transient=not has_wrong_certificate) from error
    except httpcore2.UnsupportedProtocol as error:
        raise ProviderError("bad_settings", f"{address}: {error}", transient=False) from error
    except httpcore2.LocalProtocolError as error:
        raise ProviderError(
            "bad_settings", f"The request to {address} is not valid: {error}", transient=False
        ) from error
    except httpcore2.TimeoutException as error:
        message = f"{address} did not accept the request in time. Check how busy the server is"
        raise ProviderError("timeout", message, transient=True) from error
    except (httpcore2.NetworkError, httpcore2.RemoteProtocolError) as error:
        if responded:
            raise ProviderError(
                "cut_stream",
                f"{address} closed the connection in the middle of its response: {error}",
                transient=True,
            ) from error
        raise ProviderError(
            "unreachable", describe_early_end(url, error), transient=True
        ) from error


class _ResponseBody(LimitedBody):
    def __init__(self, incoming: httpcore2.Response, url: httpx2.URL) -> None:
        super().__init__(incoming, get_host(url), MAX_RESPONSE_BYTES)
        self._url = url

    @override
    def __iter__(self) -> Iterator[bytes]:
        with _translating_errors(self._url, responded=True):
            yield from super().__iter__()


class GuardedTransport(httpx2.BaseTransport):
    """A transport with pooled connections; use it only inside `within(scope)`."""

    def __init__(self, base_url: str, private_hosts: PrivateHosts) -> None:
        proxy = _find_proxy(base_url)
        self._backend = _build_backend(httpx2.URL(base_url), private_hosts, proxy)
        self._pool = httpcore2.ConnectionPool(
            ssl_context=load_system_trust(),
            proxy=proxy,
            max_connections=None,  # a thread that waits for a connection could not be stopped
            max_keepalive_connections=MAX_IDLE_CONNECTIONS,
            keepalive_expiry=IDLE_S,
            network_backend=self._backend,
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        outgoing = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=[*request.headers.raw, *build_correlation_headers()],
            content=request.stream if isinstance(request.stream, httpx2.SyncByteStream) else None,
            extensions={**request.extensions, "timeout": {"connect": CONNECT_S, "write": WRITE_S}},
        )
        with _translating_errors(url, responded=False):
            self._backend.check_behind_proxy(get_host(url), get_port(url))
            response = self._pool.handle_request(outgoing)
        return httpx2.Response(
            status_code=response.status,
            headers=response.headers,
            stream=_ResponseBody(response, url),
            extensions=response.extensions,
        )

    def close(self) -> None:
        self._pool.close()


def _find_proxy(base_url: str) -> httpcore2.Proxy | None:
    """Return the proxy for this address from HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY; None
    if there is none."""
    target = urllib.parse.urlsplit(base_url)
    proxies = urllib.request.getproxies()
    address = proxies.get(target.scheme) or proxies.get("all")
    if not address or target.hostname in _LOOPBACK or urllib.request.proxy_bypass(target.netloc):
        return None
    proxy = urllib.parse.urlsplit(address if "//" in address else f"http://{address}")
    auth = (
        (urllib.parse.unquote(proxy.username), urllib.parse.unquote(proxy.password or ""))
        if proxy.username
        else None
    )
    return httpcore2.Proxy(url=f"{proxy.scheme}://{proxy.hostname}:{proxy.port or 80}", auth=auth)
