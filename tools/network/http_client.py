"""The guarded HTTP client, which checks and limits the requests of tools."""

import asyncio
import contextvars
import json
import ssl
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import httpcore2
import httpx2

from tools.contract import ErrorCode, NetworkAccess, ToolError, check_fence
from tools.contract.correlation import build_correlation_headers
from tools.network.charsets import decode_text
from tools.network.errors import (
    network_error,
    response_too_large,
    security_violation,
    timeout_error,
)
from tools.network.name_resolution import Resolver, resolve_with_system
from tools.network.transport import (
    FRAMING,
    GuardedBackend,
    LimitedBody,
    RequestGuard,
    load_system_trust,
    within,
)
from tools.network.urls import get_host, get_origin, get_port, read_url

USER_AGENT = "Gadget"
READS = frozenset({"GET", "HEAD", "OPTIONS"})
METHODS = READS | {"POST", "PUT", "PATCH", "DELETE"}
REDIRECTS = frozenset({301, 302, 303, 307, 308})
FORWARDED_HEADERS = frozenset({"accept", "accept-language", "user-agent"})
"""The only headers that follow a redirect to another server; any other header may be a credential.
"""
FRAMING_HEADERS = frozenset(
    {
        *(
            "host",
            "content-length",
            "transfer-encoding",
            "connection",
            "upgrade",
            "te",
            "trailer",
            "expect",
        ),
        *("accept-encoding", "keep-alive", "proxy-authorization", "proxy-connection"),
    }
)
"""Headers that callers may not set: those that frame the request, and those of the connection."""


@dataclass(frozen=True)
class NetworkLimits:
    """The limits of one request.

    Attributes:
        total_s: seconds for everything: name resolution, connections, redirects and the whole
            response.
        connect_s: seconds to open one connection, within `total_s`.
        response_bytes: bytes of content, compressed and decompressed alike.
        header_bytes: bytes of the response's status line and headers.
        redirects: redirects to follow; with 0, a redirect is returned as the response.
    """

    total_s: float = 30.0
    connect_s: float = 10.0
    response_bytes: int = 10_000_000
    header_bytes: int = 64 * 1024
    redirects: int = 5


@dataclass(frozen=True)
class ClientResponse:
    """A response that was read completely.

    Attributes:
        headers: by lower-case name; repeated headers are joined by ", ".
        url: the address that responded, after redirects.
        content: decompressed.
    """

    status: int
    headers: Mapping[str, str]
    url: str
    content: bytes = field(repr=False)

    @property
    def text(self) -> str:
        """The content, decoded with the charset of its Content-Type or as UTF-8; invalid bytes
        become U+FFFD."""
        response = httpx2.Response(self.status, headers=dict(self.headers))
        return decode_text(self.content, response.charset_encoding)

    def json(self) -> Any:
        """Parse the content as JSON.

        Raises:
            ToolError: OPERATION_FAILED, the content is not JSON.
        """
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError) as error:
            host = httpx2.URL(self.url).host
            raise ToolError(
                ErrorCode.OPERATION_FAILED, f"The response of {host} is not JSON."
            ) from error


def request(  # noqa: PLR0913 - the usual arguments of an HTTP client, passed by keyword
    method: str,
    url: str,
    *,
    reach: NetworkAccess,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    limits: NetworkLimits = NetworkLimits(),
    repeatable: bool | None = None,
) -> ClientResponse:
    """Send one request; see `GuardedClient.request`."""
    return GuardedClient(reach, limits).request(method, url, headers, body, repeatable=repeatable)


async def request_async(method: str, url: str, **options: Any) -> ClientResponse:
    """Send one request like `request`, with the same options, without blocking the event loop.

    If the call is cancelled, the request continues until it finishes or exceeds its time limit.
    """
    context = contextvars.copy_context()
    # Use a separate pool: the event loop waits for the threads of its own pool when it closes.
    threads = ThreadPoolExecutor(1, thread_name_prefix="tool-request")
    try:
        send = partial(context.run, partial(request, method, url, **options))
        return await asyncio.get_running_loop().run_in_executor(threads, send)
    finally:
        threads.shutdown(wait=False)


@dataclass(frozen=True)
class GuardedClient:
    """An HTTP client that checks every address before it connects.

    Each request opens its own connection, because a reused connection would keep the rules under
    which it was opened. The client does not use cookies, proxies, or passwords from the environment
    or from files.

    Attributes:
        resolve: returns the addresses of a host name.
        trust: the trusted certificate authorities; None for the system's.
        dial: opens connections to given addresses.
    """

    reach: NetworkAccess = field(default_factory=NetworkAccess)
    limits: NetworkLimits = NetworkLimits()
    resolve: Resolver = resolve_with_system
    trust: ssl.SSLContext | None = None
    dial: httpcore2.NetworkBackend = field(default_factory=httpcore2.SyncBackend)

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        *,
        repeatable: bool | None = None,
    ) -> ClientResponse:
        """Send one request and return the response, regardless of its status.

        The first host may be any public host, because the gate has judged it by `Tool.hosts`.
        Redirects of a read are followed to the same host and to hosts in `reach.allowed`, never
        from https to http. A write is never repeated at another address: 307 and 308 are refused,
        and any other redirect is returned as the response.

        Args:
            headers: follow a redirect only within the same server, except FORWARDED_HEADERS.
            repeatable: True if the request may be sent twice. None means True if the method is one
                of READS and there is no body. Even if it is True, redirects are followed only for
                requests with such a method and no body.

        Raises:
            ToolError: SECURITY_VIOLATION, INVALID_PARAMETER, NETWORK_ERROR, TIMEOUT or
                LIMIT_EXCEEDED, with `attempted` False if no byte was sent to any server. After a
                write was sent, the code means that its outcome is unknown, or is OPERATION_FAILED
                because the server refused the write.
        """
        here, deadline = read_url(url), time.monotonic() + self.limits.total_s
        outgoing = _OutgoingRequest(
            method.upper(), _complete_headers(method.upper(), headers or {}), body, repeatable
        )
        response = self._exchange(outgoing, here, deadline)
        if not self.limits.redirects:
            return response
        try:
            return self._follow_redirects(response, outgoing, here, deadline)
        except ToolError as error:
            error.attempted = (
                True  # the first server received the request, even if the next one did not
            )
            raise

    def _follow_redirects(
        self,
        response: ClientResponse,
        outgoing: "_OutgoingRequest",
        here: httpx2.URL,
        deadline: float,
    ) -> ClientResponse:
        """Follow redirects and return the last response."""
        first = here
        for left in range(self.limits.redirects, -1, -1):
            target = response.headers.get("location", "") if response.status in REDIRECTS else ""
            if not target:
                return response
            if not outgoing.may_redirect:
                return _check_write_redirect(response, here)
            there = self._resolve_redirect(here, target)
            outgoing = (
                outgoing if _is_same_server(here, there) else outgoing.without_private_headers()
            )
            here = there
            if left:
                response = self._exchange(outgoing, here, deadline)
        most = "once" if self.limits.redirects == 1 else f"{self.limits.redirects} times"
        raise ToolError(
            ErrorCode.LIMIT_EXCEEDED,
            # Name the first host, because `here` was never contacted.
            f"{get_host(first)} redirects more than {most}.",
            recovery_hint="Use the final address of the redirects.",
        )

    def build_backend(self) -> GuardedBackend:
        """Build the backend that checks and opens the connections."""
        return GuardedBackend(self.reach, self.resolve, self.dial)

    def get_tls_context(self) -> ssl.SSLContext:
        """Return the TLS context that verifies certificates."""
        return self.trust or load_system_trust()

    def _resolve_redirect(self, here: httpx2.URL, target: str) -> httpx2.URL:
        try:
            there = read_url(str(here.join(target)))
        except (httpx2.InvalidURL, ValueError):
            raise network_error(
                f"{get_host(here)} redirects to an address that cannot be read.", attempted=True
            ) from None
        if there.scheme == "http" and here.scheme == "https":
            raise security_violation(
                f"{get_host(here)} redirects from https to http, which is not encrypted."
            )
        if get_host(there) not in self.reach.allowed | {get_host(here)}:
            raise security_violation(
                f"{get_host(here)} redirects to another host: {there.scheme}://{get_host(there)}.",
                "If that host is the right one, use its address instead.",
            )
        return there

    def _exchange(
        self, outgoing: "_OutgoingRequest", url: httpx2.URL, deadline: float
    ) -> ClientResponse:
        guard = RequestGuard(
            deadline, self.limits.header_bytes, partial(check_fence, outgoing.is_read)
        )
        try:
            with within(guard), _translating_errors(get_host(url), guard, self.limits.total_s):
                wire_request = outgoing.to_wire(url, self.limits.connect_s)
                with httpcore2.HTTPConnection(
                    wire_request.url.origin,
                    self.get_tls_context(),
                    network_backend=self.build_backend(),
                ) as connection:
                    return self._read(connection.handle_request(wire_request), url, guard)
        except ToolError as error:
            if outgoing.is_read or not guard.sent:
                raise
            # The response is unusable, so the outcome of the write is unknown.
            code = error.code if error.code is ErrorCode.TIMEOUT else ErrorCode.NETWORK_ERROR
            raise ToolError(
                code, error.message, recovery_hint="Check whether it was done."
            ) from error

    def _read(
        self, incoming: httpcore2.Response, url: httpx2.URL, guard: RequestGuard
    ) -> ClientResponse:
        host, most = get_host(url), self.limits.response_bytes
        guard.reading = "response"
        guard.most = self.limits.header_bytes + most * FRAMING
        response = httpx2.Response(
            incoming.status, headers=incoming.headers, stream=LimitedBody(incoming, host, most)
        )
        # Content that was compressed twice could grow without limit between the two steps; no
        # honest server sends it.
        if incoming.status == 101 or "," in response.headers.get("content-encoding", ""):
            raise network_error(
                f"{host} sent a response in a form that was not requested.", attempted=True
            )
        parts, size = [], 0
        for part in response.iter_bytes():
            size += len(part)
            if size > most:
                raise response_too_large(host, "response", most)
            parts.append(part)
        return ClientResponse(
            incoming.status, dict(response.headers.items()), str(url), b"".join(parts)
        )


@dataclass(frozen=True)
class _OutgoingRequest:
    method: str
    headers: Mapping[str, str]
    body: bytes | None
    repeatable: bool | None

    @property
    def is_read(self) -> bool:
        """True if the request may be sent twice: by default, a read method without a body."""
        return self._is_plain_read if self.repeatable is None else self.repeatable

    @property
    def may_redirect(self) -> bool:
        """True if redirects of the request may be followed."""
        return self.is_read and self._is_plain_read

    @property
    def _is_plain_read(self) -> bool:
        return self.method in READS and self.body is None

    def without_private_headers(self) -> "_OutgoingRequest":
        forwarded = {
            name: value for name, value in self.headers.items() if name in FORWARDED_HEADERS
        }
        return replace(self, headers=forwarded)

    def to_wire(self, url: httpx2.URL, connect_s: float) -> httpcore2.Request:
        prepared = httpx2.Request(
            self.method, url, headers=[*self.headers.items()], content=self.body
        )
        prepared.headers["accept-encoding"] = "gzip, deflate"
        prepared.headers["connection"] = "close"
        return httpcore2.Request(
            self.method,
            httpcore2.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=prepared.headers.raw,
            content=self.body,
            extensions={"timeout": {"connect": connect_s}},
        )


def _complete_headers(method: str, headers: Mapping[str, str]) -> Mapping[str, str]:
    if method not in METHODS:
        raise ToolError(
            ErrorCode.OPERATION_NOT_ALLOWED,
            f"The method {method!r} is not supported.",
            attempted=False,
        )
    lower = {name.lower(): value for name, value in headers.items()}
    if ours := FRAMING_HEADERS & lower.keys():
        raise security_violation(f"Only Gadget sets the header {min(ours)!r}.", "Leave it out.")
    correlation = {
        name.decode().lower(): value.decode() for name, value in build_correlation_headers()
    }
    return {"accept": "*/*", "user-agent": USER_AGENT, **correlation, **lower}


def _check_write_redirect(response: ClientResponse, url: httpx2.URL) -> ClientResponse:
    if response.status not in (307, 308):
        return response
    raise ToolError(
        ErrorCode.OPERATION_FAILED,
        f"{get_host(url)} redirects this write, and Gadget never repeats a write at another address.",
        recovery_hint="An admin must correct the address of the service.",
    )


def _is_same_server(here: httpx2.URL, there: httpx2.URL) -> bool:
    upgrade = (here.scheme, get_port(here), there.scheme, get_port(there)) == (
        "http",
        80,
        "https",
        443,
    )
    return get_origin(here) == get_origin(there) or (upgrade and get_host(here) == get_host(there))


@contextmanager
def _translating_errors(host: str, guard: RequestGuard, total_s: float) -> Iterator[None]:
    """Translate the HTTP library's errors without quoting the request or the response."""
    try:
        yield
    except httpcore2.TimeoutException:
        raise timeout_error(host, total_s, attempted=guard.sent) from None
    except httpcore2.ConnectError as error:
        raise network_error(_describe_connect_error(host, error)) from error
    except httpcore2.LocalProtocolError as error:
        message = "The request cannot be sent: a header or the path contains a forbidden character."
        raise ToolError(ErrorCode.INVALID_PARAMETER, message, attempted=guard.sent) from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        words = "dropped the connection" if guard.sent else "closed the connection"
        raise network_error(
            f"{host} {words} or sent an invalid response.", attempted=guard.sent
        ) from error
    except httpx2.DecodingError as error:
        raise network_error(
            f"{host} sent a response that cannot be decompressed.", attempted=True
        ) from error
    except UnicodeEncodeError as error:
        message = "The request cannot be sent: a header contains a non-ASCII character."
        raise ToolError(ErrorCode.INVALID_PARAMETER, message, attempted=False) from error


def _describe_connect_error(host: str, error: httpcore2.ConnectError) -> str:
    cause = error.args[0] if error.args else None
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"The certificate of {host} is not valid: {cause.verify_message}"
    if isinstance(cause, ssl.SSLError):
        return f"{host} does not respond over https, or has no encryption method in common with Gadget."
    return f"{host} does not accept connections."
