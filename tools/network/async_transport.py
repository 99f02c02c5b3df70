"""A guarded transport for asynchronous HTTP clients of other libraries, such as the MCP client."""

import ssl
from collections.abc import AsyncIterator, Iterable
from functools import partial
from typing import Any

import anyio.to_thread
import httpcore2
import httpx2
from typing_extensions import override

from tools.contract.correlation import build_correlation_headers
from tools.network.errors import network_error, response_too_large, security_violation
from tools.network.http_client import GuardedClient
from tools.network.urls import get_host, get_origin, read_url


class GuardedAsyncTransport(httpx2.AsyncBaseTransport):
    """A transport that reaches one server only: `httpx2.AsyncClient(transport=…, trust_env=False)`.

    Every new connection resolves the name again, checks all addresses and uses one of them.
    Redirects to another server are refused, so that credentials stay with their server. Two of the
    guarded client's limits apply: `connect_s` and `response_bytes` (for each response or stream).
    The HTTP client sets its own read timeout, because a stream may stay open for a long time.
    Content is not compressed, and all text is read as UTF-8.

    Raises, inside the HTTP client's calls:
        ToolError: SECURITY_VIOLATION, NETWORK_ERROR, TIMEOUT (of the name service) or
            LIMIT_EXCEEDED.
        httpx2.HTTPError: instead of the httpcore2 error of the same name.
    """

    def __init__(self, client: GuardedClient, url: str) -> None:
        self._client = client
        self._server = get_origin(read_url(url))
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=client.get_tls_context(), network_backend=_PinnedAsyncBackend(client)
        )

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = read_url(str(request.url))
        if get_origin(url) != self._server:
            raise security_violation(
                f"{self._server[1]} redirects to another server: {url.scheme}://{get_host(url)}."
            )
        headers = [
            (name, value)
            for name, value in request.headers.raw
            if name.lower() != b"accept-encoding"
        ]
        outgoing = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=[*headers, (b"Accept-Encoding", b"identity"), *build_correlation_headers()],
            content=request.stream if isinstance(request.stream, httpx2.AsyncByteStream) else None,
            extensions=request.extensions,
        )
        incoming = await _translate_errors(self._pool.handle_async_request(outgoing))
        stream = _LimitedBody(incoming, get_host(url), self._client.limits.response_bytes)
        response = httpx2.Response(
            incoming.status, headers=incoming.headers, stream=stream, extensions=incoming.extensions
        )
        response.encoding = "utf-8"
        if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
            await stream.aclose()
            raise network_error(
                f"{get_host(url)} sent a compressed response, which was not requested.",
                attempted=True,
            )
        return response

    @override
    async def aclose(self) -> None:
        await self._pool.aclose()


class _LimitedBody(httpx2.AsyncByteStream):
    def __init__(self, incoming: httpcore2.Response, host: str, most: int) -> None:
        self._incoming = incoming
        self._host = host
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        parts = self._incoming.aiter_stream()
        while (part := await _translate_errors(anext(parts, None))) is not None:
            size += len(part)
            if size > self._most:
                raise response_too_large(self._host, "response", self._most)
            yield part

    @override
    async def aclose(self) -> None:
        await self._incoming.aclose()


class _PinnedAsyncBackend(httpcore2.AsyncNetworkBackend):
    def __init__(self, client: GuardedClient) -> None:
        self._client = client
        self._dial = httpcore2.AnyIOBackend()

    @override
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        seconds = self._client.limits.connect_s
        look_up = partial(self._client.build_backend().look_up, host, port, seconds)
        addresses = await anyio.to_thread.run_sync(look_up, abandon_on_cancel=True)
        for address in addresses[:-1]:
            try:
                return await self._dial.connect_tcp(str(address), port, seconds)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return await self._dial.connect_tcp(str(addresses[-1]), port, seconds)

    @override
    async def sleep(self, seconds: float) -> None:
        await self._dial.sleep(seconds)


_HTTPX_ERRORS = {
    httpcore2.ConnectTimeout: httpx2.ConnectTimeout,
    httpcore2.ReadTimeout: httpx2.ReadTimeout,
    httpcore2.WriteTimeout: httpx2.WriteTimeout,
    httpcore2.PoolTimeout: httpx2.PoolTimeout,
    httpcore2.ConnectError: httpx2.ConnectError,
    httpcore2.ReadError: httpx2.ReadError,
    httpcore2.WriteError: httpx2.WriteError,
    httpcore2.LocalProtocolError: httpx2.LocalProtocolError,
    httpcore2.RemoteProtocolError: httpx2.RemoteProtocolError,
}


async def _translate_errors(step: Any) -> Any:
    """Await the step, and raise httpcore2's errors as the httpx2 errors of the same names, which
    callers know."""
    try:
        return await step
    except tuple(_HTTPX_ERRORS) as error:
        name = next(ours for theirs, ours in _HTTPX_ERRORS.items() if isinstance(error, theirs))
        fault = error.args[0] if error.args else ""
        words = (
            fault.verify_message if isinstance(fault, ssl.SSLCertVerificationError) else str(fault)
        )
        raise name(words) from error
