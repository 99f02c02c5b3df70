"""Compares the servers of single operations with the one address of a source."""

from collections import Counter
from collections.abc import Iterable
from urllib.parse import urljoin, urlsplit

from .references import RefusedError

_USUAL_PORTS = {"http": ":80", "https": ":443"}


class Servers:
    """The servers of one description's operations.

    Args:
        main: the servers of the whole description; if no operation uses them, the most common one counts.
        own: each operation's own servers.
        base_url: the admin's address, against which relative servers are resolved; empty if none was given yet.

    Attributes:
        main: the servers that the address of the source replaces.
    """

    def __init__(self, main: tuple[str, ...], own: Iterable[tuple[str, ...]], base_url: str = "") -> None:
        every = list(own)
        is_used = any(not servers or set(servers) & set(main) for servers in every)
        counted = Counter(servers[0] for servers in every if servers)
        self.main = (main if is_used else tuple(server for server, _ in counted.most_common(1))) or main
        self._at = base_url
        self._base = self._whole(base_url) or next(map(self._whole, self.main), "")
        self._main = {self._whole(server) for server in self.main}
        named = {self._whole(server) for servers in every for server in servers if "://" in server}
        self._is_main = self._base in self._main or self._base not in named

    def prefix(self, own: tuple[str, ...]) -> str:
        """Return the prefix between the source's address and an operation's path, usually empty.

        Args:
            own: the operation's own servers; empty if it has none.

        Raises:
            RefusedError: the operation is at another address.
        """
        if not own:
            if self._is_main:
                return ""
            raise RefusedError(f"it is not at the address of this source, but at {self.main[0]}: {_WAY_OUT}")
        whole = [self._whole(server) for server in own if self._is_main or "://" in server]
        if self._base in whole or (self._is_main and self._main.intersection(whole)):
            return ""
        for each in whole:
            if self._base and each.startswith(f"{self._base}/"):
                return each.removeprefix(self._base)
        raise RefusedError(f"it has a server of its own, {own[0]}: {_WAY_OUT}")

    def _whole(self, server: str) -> str:
        """Normalize the server for comparison: absolute if that is known, without a trailing slash."""
        try:
            address = urljoin(self._at, server)
            parts = urlsplit(address)
        except ValueError:
            return server
        netloc = parts.netloc.lower().removesuffix(_USUAL_PORTS.get(parts.scheme, " "))
        return f"{parts.scheme}://{netloc}{parts.path.rstrip('/')}" if netloc else address.rstrip("/")


_WAY_OUT = "connect a second source for that address"
