"""How a server of the Model Context Protocol is reached: a program on this machine, or an address."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import TypeAlias
from urllib.parse import SplitResult, parse_qsl, urlsplit

from tools.contract import SHORTEST_SECRET, Reach, fingerprint


@dataclass(frozen=True)
class StdioServer:
    """A program that speaks over its standard input and output.

    Attributes:
        command: the program and its arguments; no shell reads them.
        environment: what the program gets besides HOME, PATH, LANG and TMPDIR; its values are secrets.
        owner: whose it is, e.g. an organisation's id; servers of different owners never share a process.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    owner: str = ""

    @property
    def title(self) -> str:
        """What messages call it: the program, and what it runs; options and all else may be secret."""
        program, *rest = self.command or ("The server",)
        runs = rest[1:2] if rest[:1] == ["-m"] else [part for part in rest[:1] if not part.startswith("-")]
        return " ".join(PurePath(part).name for part in (program, *runs))

    @cached_property
    def key(self) -> str:
        """Equal for those that may share a process."""
        return fingerprint([self.owner, list(self.command), dict(self.environment)])

    @cached_property
    def where(self) -> str:
        """A hash of where its tools come from; another password is not another place."""
        return fingerprint([list(self.command), sorted(self.environment)])

    @cached_property
    def secrets(self) -> frozenset[str]:
        """Values that must appear nowhere."""
        return frozenset(value for value in self.environment.values() if len(value) >= SHORTEST_SECRET)


@dataclass(frozen=True)
class HttpServer:
    """A server behind an address, spoken to by streamable HTTP.

    Attributes:
        headers: sent with every request, to this server alone; their values are secrets.
        reach: which private addresses are allowed.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    reach: Reach = field(default_factory=Reach)

    @property
    def title(self) -> str:
        """What messages call it."""
        return self._parts.netloc.rpartition("@")[2] or "The server"

    @cached_property
    def key(self) -> str:
        """Equal for those that are the same server, asked in the same name."""
        return fingerprint([self.url, dict(self.headers)])

    @cached_property
    def where(self) -> str:
        """A hash of where its tools come from, without the query, which may hold a key."""
        parts = self._parts
        return fingerprint([parts.scheme.lower(), parts.netloc.lower(), parts.path])

    @cached_property
    def secrets(self) -> frozenset[str]:
        """Values that must appear nowhere, with and without `Bearer` before them."""
        values = [*self.headers.values(), *(value for _, value in parse_qsl(self._parts.query))]
        parts = (part for value in values for part in (value, value.rpartition(" ")[2]))
        return frozenset(part for part in parts if len(part) >= SHORTEST_SECRET)

    @property
    def _parts(self) -> SplitResult:
        """Nothing but the path of what cannot be read; the door refuses that."""
        try:
            return urlsplit(self.url)
        except ValueError:
            return SplitResult("", "", self.url, "", "")


Server: TypeAlias = StdioServer | HttpServer
