"""Which addresses may be connected to: public ones, and those that an admin allows a host by name."""

from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from tools.contract import HostPort, Reach

Address = IPv4Address | IPv6Address


class Kind(Enum):
    """How an address is treated; the value says what it is, as part of a sentence."""

    PUBLIC = "a public address"
    INNER = "a private address"
    """Allowed where `Reach.opens` the server."""
    SPECIAL = "an address of a special range"
    """Never allowed: link-local ones, the metadata services of clouds, those for documentation, and forms that carry
    another address inside."""
    UNUSABLE = "an address that names no single host"
    """Never allowed."""


def _networks(kind: Kind, *texts: str) -> list[tuple[IPv4Network | IPv6Network, Kind]]:
    return [(ip_network(text), kind) for text in texts]


# The first that holds the address counts. Written out: what `ipaddress` calls global differs by Python's version.
_IPV4 = (
    *_networks(Kind.UNUSABLE, "0.0.0.0/8", "224.0.0.0/4", "255.255.255.255/32"),
    *_networks(Kind.SPECIAL, "169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32"),  # the last two: metadata
    *_networks(Kind.INNER, "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"),
    *_networks(Kind.SPECIAL, "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24"),
    *_networks(Kind.SPECIAL, "203.0.113.0/24", "240.0.0.0/4"),
)
_IPV6 = (
    *_networks(Kind.UNUSABLE, "::/128", "ff00::/8"),
    *_networks(Kind.SPECIAL, "fd00:ec2::/32", "fd20:ce::/32", "fd00:c1::/32", "fd00:42::/32"),  # metadata
    *_networks(Kind.INNER, "::1/128", "fc00::/7"),
    # Teredo and other trials, documentation, 6to4, documentation
    *_networks(Kind.SPECIAL, "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"),
    *_networks(Kind.PUBLIC, "2000::/3"),
    *_networks(Kind.SPECIAL, "::/0"),  # mapped and compatible IPv4, NAT64, link-local, site-local, all else
)
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})


def kind_of(address: Address) -> Kind:
    """How the address is treated."""
    if isinstance(address, IPv4Address):
        return next((kind for network, kind in _IPV4 if address in network), Kind.PUBLIC)
    if (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP:
        return Kind.SPECIAL
    plain = IPv6Address(int(address))  # without its zone, which belongs to no network
    return next(kind for network, kind in _IPV6 if plain in network)


def fault_of(address: Address, server: HostPort, reach: Reach) -> str:
    """Say why the server may not be reached at this address, as part of a sentence; empty if it may."""
    kind = kind_of(address)
    is_open = kind is Kind.PUBLIC or (kind is Kind.INNER and reach.opens(server, address))
    return "" if is_open else str(kind.value)
