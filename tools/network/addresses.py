"""IP addresses that tools may connect to: public ones, and private ones of allowed hosts."""

from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from tools.contract import HostPort, NetworkAccess

Address = IPv4Address | IPv6Address


class AddressKind(Enum):
    """The kind of an address; the value describes it as part of a sentence."""

    PUBLIC = "a public address"
    PRIVATE = "a private address"
    """Allowed for a server if `NetworkAccess.allows_private` says so."""
    SPECIAL = "a reserved address"
    """Never allowed: link-local addresses, cloud metadata services, documentation ranges, and
    addresses that carry another address inside."""
    NO_HOST = "a multicast, broadcast or unspecified address"
    """Never allowed."""


def _parse_networks(
    kind: AddressKind, *texts: str
) -> list[tuple[IPv4Network | IPv6Network, AddressKind]]:
    return [(ip_network(text), kind) for text in texts]


# The first network that contains the address decides. The list is explicit, because `is_global`
# differs between Python versions.
_IPV4 = (
    *_parse_networks(AddressKind.NO_HOST, "0.0.0.0/8", "224.0.0.0/4", "255.255.255.255/32"),
    # Link-local addresses, and two metadata services of cloud providers.
    *_parse_networks(
        AddressKind.SPECIAL, "169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32"
    ),
    *_parse_networks(
        AddressKind.PRIVATE,
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
    ),
    *_parse_networks(
        AddressKind.SPECIAL,
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
    ),
    *_parse_networks(AddressKind.SPECIAL, "203.0.113.0/24", "240.0.0.0/4"),
)
_IPV6 = (
    *_parse_networks(AddressKind.NO_HOST, "::/128", "ff00::/8"),
    # Metadata services of cloud providers.
    *_parse_networks(
        AddressKind.SPECIAL, "fd00:ec2::/32", "fd20:ce::/32", "fd00:c1::/32", "fd00:42::/32"
    ),
    *_parse_networks(AddressKind.PRIVATE, "::1/128", "fc00::/7"),
    # Teredo and other protocol assignments, documentation, 6to4, documentation
    *_parse_networks(AddressKind.SPECIAL, "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"),
    *_parse_networks(AddressKind.PUBLIC, "2000::/3"),
    # All the rest, such as mapped and compatible IPv4, NAT64, link-local and site-local.
    *_parse_networks(AddressKind.SPECIAL, "::/0"),
)
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})


def classify_address(address: Address) -> AddressKind:
    """Return the kind of the address."""
    if isinstance(address, IPv4Address):
        return next((kind for network, kind in _IPV4 if address in network), AddressKind.PUBLIC)
    if (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP:
        return AddressKind.SPECIAL
    return next(kind for network, kind in _IPV6 if address in network)


def find_forbidden_kind(
    address: Address, server: HostPort, reach: NetworkAccess
) -> AddressKind | None:
    """Return the kind of the address if connecting to the server there is forbidden, or else
    None."""
    kind = classify_address(address)
    is_open = kind is AddressKind.PUBLIC or (
        kind is AddressKind.PRIVATE and reach.allows_private(server, address)
    )
    return None if is_open else kind
