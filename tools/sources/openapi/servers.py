"""Comparison of the operations' servers with the one address of their source."""

from collections import Counter
from collections.abc import Iterable
from urllib.parse import urljoin, urlsplit

from tools.sources.openapi.references import UnsupportedOperationError

_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class ServerMatcher:
    """Matcher of the operations' servers against the source's address.

    Args:
        main: the servers of the whole description, or the most common server if none of the
            operations use them.
        own: each operation's own servers.
        base_url: the admin's address, the base of relative servers; empty if there is none yet.

    Attributes:
        main: the servers that the source's address replaces.
    """

    def __init__(
        self, main: tuple[str, ...], own: Iterable[tuple[str, ...]], base_url: str = ""
    ) -> None:
        every = list(own)
        is_used = any(not servers or set(servers) & set(main) for servers in every)
        counted = Counter(servers[0] for servers in every if servers)
        self.main = (
            main if is_used else tuple(server for server, _ in counted.most_common(1))
        ) or main
        self._at = base_url
        self._base = self._normalize(base_url) or next(map(self._normalize, self.main), "")
        self._main = {self._normalize(server) for server in self.main}
        named = {
            self._normalize(server) for servers in every for server in servers if "://" in server
        }
        self._is_main = self._base in self._main or self._base not in named

    def find_prefix(self, own: tuple[str, ...]) -> str:
        """Return the prefix between the source's address and an operation's path, usually empty.

        Args:
            own: the operation's own servers; empty if it has none.

        Raises:
            UnsupportedOperationError: the operation is at another address.
        """
        if not own:
            if self._is_main:
                return ""
            raise UnsupportedOperationError(
                f"it is not at the address of this source, but at {self.main[0]}: {_SOLUTION}"
            )
        normalized = [self._normalize(server) for server in own if self._is_main or "://" in server]
        if self._base in normalized or (self._is_main and self._main.intersection(normalized)):
            return ""
        for each in normalized:
            if self._base and each.startswith(f"{self._base}/"):
                return each.removeprefix(self._base)
        raise UnsupportedOperationError(f"it has a server of its own, {own[0]}: {_SOLUTION}")

    def _normalize(self, server: str) -> str:
        """Normalize the server for comparison: absolute if possible, without a trailing slash."""
        try:
            address = urljoin(self._at, server)
            parts = urlsplit(address)
        except ValueError:
            return server
        netloc = parts.netloc.lower().removesuffix(_DEFAULT_PORTS.get(parts.scheme, " "))
        return (
            f"{parts.scheme}://{netloc}{parts.path.rstrip('/')}" if netloc else address.rstrip("/")
        )


_SOLUTION = "connect a second source for that address"
