"""Addresses of MCP servers: a program on this machine, or a URL."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import TypeAlias
from urllib.parse import SplitResult, parse_qsl, urlsplit

from tools.contract import SHORTEST_SECRET, NetworkAccess, fingerprint


@dataclass(frozen=True)
class StdioServer:
    """A server program that communicates over standard input and output.

    Attributes:
        command: the program and its arguments; no shell interprets them.
        environment: variables besides HOME, PATH, LANG and TMPDIR; their values are secret.
        owner: the owner, e.g. an organization's id; servers of different owners never share a
            process.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    owner: str = ""

    @property
    def title(self) -> str:
        """The name in messages: the program and its script; all other arguments may be secret."""
        program, *rest = self.command or ("The server",)
        runs = (
            rest[1:2]
            if rest[:1] == ["-m"]
            else [part for part in rest[:1] if not part.startswith("-")]
        )
        return " ".join(PurePath(part).name for part in (program, *runs))

    @cached_property
    def key(self) -> str:
        """A key that is equal for servers that may share a process."""
        return fingerprint([self.owner, list(self.command), dict(self.environment)])

    @cached_property
    def place_hash(self) -> str:
        """The hash of the place that the server's tools come from; a new password does not change
        it."""
        return fingerprint([list(self.command), sorted(self.environment)])

    @cached_property
    def secrets(self) -> frozenset[str]:
        """Values to hide everywhere."""
        return frozenset(
            value for value in self.environment.values() if len(value) >= SHORTEST_SECRET
        )


@dataclass(frozen=True)
class HttpServer:
    """A server at a URL, reached by streamable HTTP.

    Attributes:
        headers: sent with every request, to this server only; their values are secret.
        reach: the private addresses that are allowed.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    reach: NetworkAccess = field(default_factory=NetworkAccess)

    @property
    def title(self) -> str:
        """The name in messages: the server's host, with its port if the URL has one."""
        return self._parts.netloc.rpartition("@")[2] or "The server"

    @cached_property
    def key(self) -> str:
        """A key that is equal for the same server with the same credentials."""
        return fingerprint([self.url, dict(self.headers)])

    @cached_property
    def place_hash(self) -> str:
        """The hash of the place from which the server's tools come, without the query, which may
        hold a key."""
        parts = self._parts
        return fingerprint([parts.scheme.lower(), parts.netloc.lower(), parts.path])

    @cached_property
    def secrets(self) -> frozenset[str]:
        """Values to hide everywhere, with and without a leading `Bearer`."""
        values = [*self.headers.values(), *(value for _, value in parse_qsl(self._parts.query))]
        parts = (part for value in values for part in (value, value.rpartition(" ")[2]))
        return frozenset(part for part in parts if len(part) >= SHORTEST_SECRET)

    @property
    def _parts(self) -> SplitResult:
        """The parts of the URL; if the URL is invalid, only a path, which the HTTP client
        refuses."""
        try:
            return urlsplit(self.url)
        except ValueError:
            return SplitResult("", "", self.url, "", "")


Server: TypeAlias = StdioServer | HttpServer
