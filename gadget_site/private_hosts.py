"""Parse the settings that list the permitted servers at private addresses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from gadget_site.faults import WrongValueError
from gadget_site.parsers import split_words
from tools.contract import PrivateHost, PrivateHosts

EXAMPLE = "ollama.internal:11434,10.0.0.5,192.168.1.0/24"
LOOPBACK = PrivateHosts(
    (PrivateHost(network=ip_network("127.0.0.0/8")), PrivateHost(network=ip_network("::1/128")))
)
DEFAULT_PORTS = {"http": 80, "https": 443}

_ENTRY = re.compile(r"(?P<host>\[[0-9A-Fa-f:./]+\]|[^\[\]:]+)(:(?P<port>\d{1,5}))?")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")


def parse_private_hosts(text: str) -> PrivateHosts:
    """Parse names, addresses and networks, separated by commas, each with an optional port.

    Raises:
        WrongValueError: an entry is not a name, an address or a network.
    """
    return PrivateHosts(tuple(map(_parse_entry, split_words(text))))


def list_named_hosts(addresses: Iterable[str]) -> list[PrivateHost]:
    """Return the host and port of each web address from the environment; skip empty addresses and
    invalid ports."""
    found = []
    for address in filter(None, addresses):
        parts = urlsplit(address)
        with suppress(ValueError):  # skip an invalid port
            port = parts.port or DEFAULT_PORTS[parts.scheme]
            found.append(_parse_host((parts.hostname or "").rstrip("."), port))
    return found


def _parse_entry(word: str) -> PrivateHost:
    is_bare_ipv6 = word.count(":") > 1 and "[" not in word
    found = _ENTRY.fullmatch(f"[{word}]" if is_bare_ipv6 else word)
    port = int(found["port"]) if found and found["port"] else None
    if found is None or (port is not None and not 1 <= port <= 65_535):
        raise _build_error(word)
    host = found["host"].strip("[]").lower().rstrip(".")
    try:
        return PrivateHost(network=ip_network(host), port=port)
    except ValueError:
        labels = host.split(".")
        if not all(map(_LABEL.fullmatch, labels)) or labels[-1].isdigit():
            raise _build_error(word) from None
    return PrivateHost(name=host, port=port)


def _parse_host(host: str, port: int) -> PrivateHost:
    try:
        return PrivateHost(network=ip_network(ip_address(host)), port=port)
    except ValueError:
        return PrivateHost(name=host.lower(), port=port)


def _build_error(word: str) -> WrongValueError:
    return WrongValueError(
        f"{word!r} is not a host name, address or network, with or without a port", EXAMPLE
    )
