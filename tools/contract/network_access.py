"""Network access: the hosts that an organization's tools may contact."""

from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import NamedTuple


class HostPort(NamedTuple):
    """A host in the form that `tools.network.parse_host` returns, and the port to connect to."""

    host: str
    port: int


@dataclass(frozen=True)
class PrivateHost:
    """One entry of the setting ALLOWED_PRIVATE_HOSTS.

    Attributes:
        name: the host's name; empty for a network.
        network: the network; a single address counts as one.
        port: None means every port.
    """

    name: str = ""
    network: IPv4Network | IPv6Network | None = None
    port: int | None = None

    def covers(self, server: HostPort, address: IPv4Address | IPv6Address) -> bool:
        """Return True if this entry allows the server at this address."""
        is_match = self.name == server.host if self.network is None else address in self.network
        return is_match and self.port in (None, server.port)


@dataclass(frozen=True)
class PrivateHosts:
    """The servers at private addresses that the owner of the installation allows."""

    entries: tuple[PrivateHost, ...] = ()

    def covers(self, server: HostPort, address: IPv4Address | IPv6Address) -> bool:
        """Return True if the server may be reached at this private address."""
        return any(entry.covers(server, address) for entry in self.entries)

    def may_cover(self, host: str, address: IPv4Address | IPv6Address | None) -> bool:
        """Return True if an entry might allow a server of this host.

        A name can resolve to an address in any network; addresses are checked on connecting.

        Args:
            address: the host itself if it is an IP address, else None.
        """
        if address is None:
            return any(entry.network is not None or entry.name == host for entry in self.entries)
        return any(entry.network is not None and address in entry.network for entry in self.entries)


@dataclass(frozen=True)
class NetworkAccess:
    """The hosts that a call may contact, by name or IP address.

    Hosts have the form that `tools.network.parse_host` returns: lower case, ASCII, IPv6 without
    brackets. Link-local, metadata, translated and documentation addresses are always forbidden.

    Attributes:
        allowed: hosts that need no approval and may be the target of a redirect.
        private: hosts that a superuser allows to have private and loopback addresses.
        requested: hosts that an admin wants to allow to have such addresses; they also need an
            entry in `installation`.
        installation: servers at private addresses that the owner of the installation allows.
    """

    allowed: frozenset[str] = frozenset()
    private: frozenset[str] = frozenset()
    requested: frozenset[str] = frozenset()
    installation: PrivateHosts = field(default_factory=PrivateHosts)

    def allows_private(self, server: HostPort, address: IPv4Address | IPv6Address) -> bool:
        """Return True if the server may be reached at this private address."""
        if server.host in self.private:
            return True
        return server.host in self.requested and self.installation.covers(server, address)
