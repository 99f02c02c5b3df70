"""Reads ALLOWED_PRIVATE_HOSTS: the servers with private addresses that tools and model providers may reach."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from gadget_site.faults import SettingError
from tools.contract import PrivateHost, PrivateHosts

SETTING = "ALLOWED_PRIVATE_HOSTS"
EXAMPLE = "ollama.internal:11434,10.0.0.5,192.168.1.0/24"
LOOPBACK = PrivateHosts((PrivateHost(network=ip_network("127.0.0.0/8")), PrivateHost(network=ip_network("::1/128"))))
DEFAULT_PORTS = {"http": 80, "https": 443}

_ENTRY = re.compile(r"(?P<place>\[[0-9A-Fa-f:./]+\]|[^\[\]:]+)(:(?P<port>\d{1,5}))?")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")


def read_private_hosts(words: Iterable[str]) -> PrivateHosts:
    """Read names, addresses and networks, each with a port or without.

    Raises:
        SettingError: one of them is none of these.
    """
    return PrivateHosts(tuple(_entry(word) for word in words))


def list_named_hosts(addresses: Iterable[str]) -> list[PrivateHost]:
    """Return the host and port of each web address that the environment names; empty ones are skipped."""
    found = []
    for address in filter(None, addresses):
        parts = urlsplit(address)
        with suppress(ValueError):  # not a port: nothing is opened
            port = parts.port or DEFAULT_PORTS[parts.scheme]
            found.append(_read_place((parts.hostname or "").rstrip("."), port))
    return found


def _entry(word: str) -> PrivateHost:
    is_bare_ipv6 = word.count(":") > 1 and "[" not in word
    found = _ENTRY.fullmatch(f"[{word}]" if is_bare_ipv6 else word)
    port = int(found["port"]) if found and found["port"] else None
    if found is None or (port is not None and not 1 <= port <= 65_535):
        raise _fault(word)
    place = found["place"].strip("[]").lower().rstrip(".")
    try:
        return PrivateHost(network=ip_network(place), port=port)
    except ValueError:
        labels = place.split(".")
        if not all(map(_LABEL.fullmatch, labels)) or labels[-1].isdigit():
            raise _fault(word) from None
    return PrivateHost(name=place, port=port)


def _read_place(host: str, port: int) -> PrivateHost:
    try:
        return PrivateHost(network=ip_network(ip_address(host)), port=port)
    except ValueError:
        return PrivateHost(name=host.lower(), port=port)


def _fault(word: str) -> SettingError:
    return SettingError(
        SETTING, f"{word!r} is not a host name, an address or a network, with or without a port", EXAMPLE
    )
