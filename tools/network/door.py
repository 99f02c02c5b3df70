"""The only way out for tools: one HTTP request to an address that was checked, with an end to everything."""

import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import httpcore2
import httpx2

from tools.contract import ErrorCode, HostPort, Reach, ToolError, look_before_request

from .charsets import decoded
from .failures import refused, too_large, too_slow, unreachable
from .resolving import Resolve, addresses_of, system_resolve
from .streams import PinnedBackend, Timer, Traffic
from .urls import host_of, origin_of, port_of, read_url

USER_AGENT = "Gadget"
READS = frozenset({"GET", "HEAD", "OPTIONS"})
METHODS = READS | {"POST", "PUT", "PATCH", "DELETE"}
REDIRECTS = frozenset({301, 302, 303, 307, 308})
TRAVELLING_HEADERS = frozenset({"accept", "accept-language", "user-agent"})
"""These alone go along when a redirect leads to another server: whatever else there is may be a credential."""
OUR_HEADERS = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect"),
        *("accept-encoding", "keep-alive", "proxy-authorization", "proxy-connection"),
    }
)
"""These frame the request, so the door alone sets them."""
_FRAMING = 8
"""How much longer than its content an answer may be on the wire, for those that send it byte by byte."""


@dataclass(frozen=True)
class NetworkLimits:
    """Where one request ends.

    Attributes:
        total_s: seconds for everything: name service, connections, redirects and the whole answer.
        connect_s: of them, seconds for one connection.
        answer_bytes: of content, as it is sent and as it is unpacked.
        header_bytes: of the answer's status line and headers.
        redirects: that are followed; 0 hands a redirect back as the answer.
    """

    total_s: float = 30.0
    connect_s: float = 10.0
    answer_bytes: int = 10_000_000
    header_bytes: int = 64 * 1024
    redirects: int = 5


@dataclass(frozen=True)
class Answer:
    """What came back.

    Attributes:
        headers: by lower-case name; of several with one name, the values joined by ", ".
        url: where the answer came from, after redirects.
        content: unpacked.
    """

    status: int
    headers: Mapping[str, str]
    url: str
    content: bytes = field(repr=False)

    @property
    def text(self) -> str:
        """The content by the charset of its Content-Type, else as UTF-8; what cannot be read becomes U+FFFD."""
        response = httpx2.Response(self.status, headers=dict(self.headers))
        return decoded(self.content, response.charset_encoding)

    def json(self) -> Any:
        """The content as JSON.

        Raises:
            ToolError: OPERATION_FAILED, if it is something else.
        """
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError) as error:
            host = httpx2.URL(self.url).host
            raise ToolError(ErrorCode.OPERATION_FAILED, f"The answer of {host} is not JSON.") from error


def request(  # noqa: PLR0913 - what every HTTP client takes, named at each call
    method: str,
    url: str,
    *,
    reach: Reach,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    limits: NetworkLimits = NetworkLimits(),
    repeatable: bool | None = None,
) -> Answer:
    """The answer to one request; see `Door.request`."""
    return Door(reach, limits).request(method, url, headers, body, repeatable=repeatable)


@dataclass(frozen=True)
class Door:
    """How requests are made. Each has a connection of its own, so none is used under other rules than those it was made
    under; there are no cookies, no proxies, and no passwords from the environment or from files.

    Attributes:
        resolve: what is asked for the addresses of a name.
        trust: whose certificates are believed; those of the system unless given.
        dial: makes connections, to the addresses that it is given.
    """

    reach: Reach = field(default_factory=Reach)
    limits: NetworkLimits = NetworkLimits()
    resolve: Resolve = system_resolve
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
    ) -> Answer:
        """The answer to one request, whatever its status.

        The first host may be any public one: the gate has judged it by `Tool.hosts`. Of a read, redirects are followed
        to the same host and to those in `reach.allowed`, never from https to http. A write is never repeated at another
        place: 307 and 308 are refused, and any other redirect is its answer.

        Args:
            headers: travel with a redirect only as long as it stays on the same server, see TRAVELLING_HEADERS.
            repeatable: whether it is a read, so that doing it twice changes nothing; None: if its method is one of
                READS and it has no body. A redirect of any other request is not followed, even of a read.

        Raises:
            ToolError: SECURITY_VIOLATION, INVALID_PARAMETER, NETWORK_ERROR, TIMEOUT or LIMIT_EXCEEDED, with
                `attempted` False if no byte was sent, to the first server or to any other. A write that was sent fails
                only by codes that leave open whether it was done, or by OPERATION_FAILED where the server said that it
                was not.
        """
        here, timer = read_url(url), Timer(self.limits.total_s)
        asked = _Asked(method.upper(), _outgoing(method.upper(), headers or {}), body, repeatable)
        answer = self._exchange(asked, here, timer)
        if not self.limits.redirects:
            return answer
        try:
            return self._followed(answer, asked, here, timer)
        except ToolError as error:
            error.attempted = True  # the first server has it, whatever became of the next
            raise

    def _followed(self, answer: Answer, asked: "_Asked", here: httpx2.URL, timer: Timer) -> Answer:
        """The answer at the end of the redirects."""
        for left in range(self.limits.redirects, -1, -1):
            target = answer.headers.get("location", "") if answer.status in REDIRECTS else ""
            if not target:
                return answer
            if not asked.may_follow:
                return _answer_of_write(answer, here)
            there = self._redirected(here, target)
            asked = asked if _same_server(here, there) else asked.for_strangers()
            here = there
            if left:
                answer = self._exchange(asked, here, timer)
        raise ToolError(
            ErrorCode.LIMIT_EXCEEDED,
            f"{host_of(here)} redirects more than {self.limits.redirects} times.",
            recovery_hint="Use the address to which it leads in the end.",
        )

    def certificate_context(self) -> ssl.SSLContext:
        """What decides whether a certificate is believed."""
        return self.trust or _system_trust()

    def _redirected(self, here: httpx2.URL, target: str) -> httpx2.URL:
        try:
            there = read_url(str(here.join(target)))
        except (httpx2.InvalidURL, ValueError):
            raise unreachable(f"{host_of(here)} redirects to an address that cannot be read.", attempted=True) from None
        if there.scheme == "http" and here.scheme == "https":
            raise refused(f"{host_of(here)} redirects from https to http, where everybody can read along.")
        if host_of(there) not in self.reach.allowed | {host_of(here)}:
            raise refused(
                f"{host_of(here)} redirects to another host: {there.scheme}://{host_of(there)}.",
                "If that host is the right one, ask for the address there.",
            )
        return there

    def _exchange(self, asked: "_Asked", url: httpx2.URL, timer: Timer) -> Answer:
        host, limits = host_of(url), self.limits
        traffic = Traffic(host, limits.header_bytes, partial(look_before_request, asked.is_read))
        try:
            with _named_failures(traffic, timer):
                addresses = addresses_of(HostPort(host, port_of(url)), self.reach, self.resolve, timer.left())
                backend = PinnedBackend(self.dial, addresses, timer, traffic)
                outgoing = asked.sent_to(url, limits.connect_s)
                with httpcore2.HTTPConnection(
                    outgoing.url.origin, self.certificate_context(), network_backend=backend
                ) as connection:
                    return self._read(connection.handle_request(outgoing), url, traffic)
        except ToolError as error:
            if asked.is_read or not traffic.sent:
                raise
            # What came of a write is not known, whatever is wrong with the answer.
            code = error.code if error.code is ErrorCode.TIMEOUT else ErrorCode.NETWORK_ERROR
            raise ToolError(code, error.message, recovery_hint="Look whether it was done.") from error

    def _read(self, incoming: httpcore2.Response, url: httpx2.URL, traffic: Traffic) -> Answer:
        traffic.reading = "answer"
        traffic.most = self.limits.header_bytes + self.limits.answer_bytes * _FRAMING
        most = self.limits.answer_bytes
        response = httpx2.Response(incoming.status, headers=incoming.headers, stream=_Raw(incoming, traffic.host, most))
        # Packed twice, it could grow in between without end, and no honest server does so.
        if incoming.status == 101 or "," in response.headers.get("content-encoding", ""):
            raise unreachable(f"{traffic.host} answers in a form that was not asked for.", attempted=True)
        parts, size = [], 0
        for part in response.iter_bytes():
            size += len(part)
            if size > most:
                raise too_large(traffic.host, "answer", most)
            parts.append(part)
        return Answer(incoming.status, dict(response.headers.items()), str(url), b"".join(parts))


@dataclass(frozen=True)
class _Asked:
    method: str
    headers: Mapping[str, str]
    body: bytes | None
    repeatable: bool | None

    @property
    def is_read(self) -> bool:
        """Whether nothing is lost if its answer is; with a body, nobody knows what it does unless it is said."""
        return self._looks_like_a_read if self.repeatable is None else self.repeatable

    @property
    def may_follow(self) -> bool:
        """Whether it may be asked again at another place."""
        return self.is_read and self._looks_like_a_read

    @property
    def _looks_like_a_read(self) -> bool:
        return self.method in READS and self.body is None

    def for_strangers(self) -> "_Asked":
        kept = {name: value for name, value in self.headers.items() if name in TRAVELLING_HEADERS}
        return replace(self, headers=kept)

    def sent_to(self, url: httpx2.URL, connect_s: float) -> httpcore2.Request:
        made = httpx2.Request(self.method, url, headers=[*self.headers.items()], content=self.body)
        made.headers["accept-encoding"] = "gzip, deflate"
        made.headers["connection"] = "close"
        return httpcore2.Request(
            self.method,
            httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=made.headers.raw,
            content=self.body,
            extensions={"timeout": {"connect": connect_s}},
        )


class _Raw(httpx2.SyncByteStream):
    """The content as it is sent."""

    def __init__(self, incoming: httpcore2.Response, host: str, most: int) -> None:
        self._incoming = incoming
        self._host = host
        self._most = most

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for part in self._incoming.iter_stream():
            size += len(part)
            if size > self._most:
                raise too_large(self._host, "answer", self._most)
            yield part


def _outgoing(method: str, headers: Mapping[str, str]) -> Mapping[str, str]:
    if method not in METHODS:
        raise ToolError(ErrorCode.OPERATION_NOT_ALLOWED, f"There is no method {method!r}.", attempted=False)
    lower = {name.lower(): value for name, value in headers.items()}
    if ours := OUR_HEADERS & lower.keys():
        raise refused(f"The header {min(ours)!r} is set by Gadget alone.", "Leave it out.")
    return {"accept": "*/*", "user-agent": USER_AGENT, **lower}


def _answer_of_write(answer: Answer, url: httpx2.URL) -> Answer:
    if answer.status not in (307, 308):
        return answer
    raise ToolError(
        ErrorCode.OPERATION_FAILED,
        f"{host_of(url)} did nothing, but says that this belongs to another address; a write is not repeated there.",
        recovery_hint="An admin has to correct the address of the service.",
    )


def _same_server(here: httpx2.URL, there: httpx2.URL) -> bool:
    upgrade = (here.scheme, port_of(here), there.scheme, port_of(there)) == ("http", 80, "https", 443)
    return origin_of(here) == origin_of(there) or (upgrade and host_of(here) == host_of(there))


@cache
def _system_trust() -> ssl.SSLContext:
    """One for the process: reading the system's certificates takes a hundred times longer than a request."""
    return httpcore2.default_ssl_context()


@contextmanager
def _named_failures(traffic: Traffic, timer: Timer) -> Iterator[None]:
    """Turns what the HTTP client raises into words, none of which come from the request or from the server."""
    host = traffic.host
    try:
        yield
    except httpcore2.TimeoutException:
        raise too_slow(host, timer.seconds, attempted=traffic.sent) from None
    except httpcore2.ConnectError as error:
        raise unreachable(_why_not_connected(host, error)) from error
    except httpcore2.LocalProtocolError as error:
        message = "The request cannot be sent: a header or the path holds a character that is not allowed."
        raise ToolError(ErrorCode.INVALID_PARAMETER, message, attempted=traffic.sent) from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        words = "broke off the connection" if traffic.sent else "closed the connection"
        raise unreachable(f"{host} {words} or answered with nonsense.", attempted=traffic.sent) from error
    except httpx2.DecodingError as error:
        raise unreachable(f"{host} sent an answer that cannot be unpacked.", attempted=True) from error
    except UnicodeEncodeError as error:
        message = "The request cannot be sent: a header holds a character outside of ASCII."
        raise ToolError(ErrorCode.INVALID_PARAMETER, message, attempted=False) from error


def _why_not_connected(host: str, error: httpcore2.ConnectError) -> str:
    cause = error.args[0] if error.args else None
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"The certificate of {host} is not valid: {cause.verify_message}"
    if isinstance(cause, ssl.SSLError):
        return f"{host} and Gadget found no way to encrypt the connection."
    return f"{host} does not accept connections."
