"""How far an organisation's tools may go on the network."""

from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import NamedTuple


class HostPort(NamedTuple):
    """A host as `tools.network.host_in` writes it, and the port to connect to."""

    host: str
    port: int


@dataclass(frozen=True)
class PrivateHost:
    """One entry of the setting ALLOWED_PRIVATE_HOSTS.

    Attributes:
        name: the host's name; empty for a network.
        network: one address is a network of its own.
        port: None for every port.
    """

    name: str = ""
    network: IPv4Network | IPv6Network | None = None
    port: int | None = None

    def covers(self, server: HostPort, address: IPv4Address | IPv6Address) -> bool:
        """Return True if this entry allows the server at this address."""
        is_there = self.name == server.host if self.network is None else address in self.network
        return is_there and self.port in (None, server.port)


@dataclass(frozen=True)
class PrivateHosts:
    """The servers with private addresses that the owner of the installation allows to be reached."""

    entries: tuple[PrivateHost, ...] = ()

    def cover(self, server: HostPort, address: IPv4Address | IPv6Address) -> bool:
        """Return True if the server may be reached at this private address."""
        return any(entry.covers(server, address) for entry in self.entries)

    def may_cover(self, host: str, address: IPv4Address | IPv6Address | None) -> bool:
        """Return True if some server of the host could be covered; `address` is the host's own if it is one.

        A name can lie in any network: its addresses are checked when it is connected to.
        """
        if address is None:
            return any(entry.network is not None or entry.name == host for entry in self.entries)
        return any(entry.network is not None and address in entry.network for entry in self.entries)


@dataclass(frozen=True)
class Reach:
    """Hosts by name or address, as `tools.network.host_in` writes them: lower case, ASCII, IPv6 without brackets.

    Link-local, metadata, translated and documentation addresses stay forbidden whatever stands here.

    Attributes:
        allowed: may be reached without asking a person, and by a redirect.
        private: may be reached though their addresses are private or loopback ones: a superuser said so.
        wanted: an admin said the same. It holds only where `installation` covers the server too.
        installation: the servers that the owner of the installation allows.
    """

    allowed: frozenset[str] = frozenset()
    private: frozenset[str] = frozenset()
    wanted: frozenset[str] = frozenset()
    installation: PrivateHosts = field(default_factory=PrivateHosts)

    def opens(self, server: HostPort, address: IPv4Address | IPv6Address) -> bool:
        """Return True if the server may be reached at this private address."""
        if server.host in self.private:
            return True
        return server.host in self.wanted and self.installation.cover(server, address)
