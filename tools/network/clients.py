"""The same door for an asynchronous HTTP client that somebody else wrote, such as that of MCP."""

import ssl
from collections.abc import AsyncIterator, Iterable
from functools import partial
from typing import Any

import anyio.to_thread
import httpcore2
import httpx2
from typing_extensions import override

from tools.contract import HostPort

from .door import Door
from .failures import refused, too_large, unreachable
from .resolving import addresses_of
from .urls import host_of, origin_of, read_url


class AsyncTransport(httpx2.AsyncBaseTransport):
    """For `httpx2.AsyncClient(transport=AsyncTransport(door, url), trust_env=False)`: it reaches that server alone.

    Every new connection asks for the name's addresses anew, checks them all and goes to one of them. Redirects to
    another server are refused, so credentials stay where they belong. Of the door's limits, `connect_s` and
    `answer_bytes` (of each answer, and of each stream) count here; how long an answer may take is the client's setting,
    because a stream may last. Nothing is compressed, and all text is UTF-8, whatever charset an answer names.

    Raises, inside the client's calls:
        ToolError: SECURITY_VIOLATION, NETWORK_ERROR, TIMEOUT (of the name service) or LIMIT_EXCEEDED.
        httpcore2's failures, as the `httpx2` errors of the same names.
    """

    def __init__(self, door: Door, url: str) -> None:
        self._door = door
        self._server = origin_of(read_url(url))
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=door.certificate_context(), network_backend=_CheckedBackend(door)
        )

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = read_url(str(request.url))
        if origin_of(url) != self._server:
            raise refused(f"{self._server[1]} redirects to another server: {url.scheme}://{host_of(url)}.")
        headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"accept-encoding"]
        outgoing = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=[*headers, (b"Accept-Encoding", b"identity")],
            content=request.stream if isinstance(request.stream, httpx2.AsyncByteStream) else None,
            extensions=request.extensions,
        )
        incoming = await _named(self._pool.handle_async_request(outgoing))
        stream = _Counted(incoming, host_of(url), self._door.limits.answer_bytes)
        response = httpx2.Response(
            incoming.status, headers=incoming.headers, stream=stream, extensions=incoming.extensions
        )
        response.encoding = "utf-8"
        if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
            await stream.aclose()
            raise unreachable(f"{host_of(url)} packs an answer that was to come as it is.", attempted=True)
        return response

    @override
    async def aclose(self) -> None:
        await self._pool.aclose()


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, incoming: httpcore2.Response, host: str, most: int) -> None:
        self._incoming = incoming
        self._host = host
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        parts = self._incoming.aiter_stream()
        while (part := await _named(anext(parts, None))) is not None:
            size += len(part)
            if size > self._most:
                raise too_large(self._host, "answer", self._most)
            yield part

    @override
    async def aclose(self) -> None:
        await self._incoming.aclose()


class _CheckedBackend(httpcore2.AsyncNetworkBackend):
    def __init__(self, door: Door) -> None:
        self._door = door
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
        door, seconds = self._door, self._door.limits.connect_s
        look_up = partial(addresses_of, HostPort(host, port), door.reach, door.resolve, seconds)
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


_SAME_NAMES = {
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


async def _named(step: Any) -> Any:
    """The result of the step; what the connection raises gets the name that the client's users know."""
    try:
        return await step
    except tuple(_SAME_NAMES) as error:
        name = next(ours for theirs, ours in _SAME_NAMES.items() if isinstance(error, theirs))
        fault = error.args[0] if error.args else ""
        words = fault.verify_message if isinstance(fault, ssl.SSLCertVerificationError) else str(fault)
        raise name(words) from error
