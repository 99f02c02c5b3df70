"""Reads addresses. One parser decides, the HTTP client's own, and what it makes of the text is what is connected to."""

import re
from ipaddress import IPv4Address, IPv6Address

import httpx2

from .failures import not_an_address, refused

LONGEST_URL = 8_000
DEFAULT_PORTS = {"http": 80, "https": 443}

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_NOT_IN_URLS = re.compile(r"[\x00-\x20\x7f-\xa0\\]")


def read_url(text: str) -> httpx2.URL:
    """The address, with its host as `host_in` writes it.

    Every port may be named: services live on all of them, and what must not be reached is known by its address. What
    one reader of addresses may take for another host than the next is refused: user information, backslashes, control
    characters, escapes in hosts, and addresses in any but their plain form.

    Raises:
        ToolError: INVALID_PARAMETER or SECURITY_VIOLATION; never quotes the address.
    """
    if len(text) > LONGEST_URL:
        raise not_an_address(f"The address is longer than {LONGEST_URL:,} characters.")
    if _NOT_IN_URLS.search(text):
        raise not_an_address("The address holds a blank, a backslash or a control character.")
    try:
        url = httpx2.URL(text)
    except (httpx2.InvalidURL, ValueError) as error:
        raise not_an_address("The address cannot be read: its host or port is not valid.") from error
    if url.scheme not in DEFAULT_PORTS:
        raise refused("Only addresses that begin with http:// or https:// can be reached.")
    if url.userinfo or "@" in text.partition("://")[2].partition("/")[0].partition("?")[0].partition("#")[0]:
        raise refused("The address holds a user name or a password before its host.", "Leave them out.")
    if url.port is not None and not 1 <= url.port <= 65_535:
        raise not_an_address("The port is not a number from 1 to 65535.")
    host = _plain(url.raw_host.decode("ascii"))
    return url.copy_with(host=host, fragment=None)


def host_in(text: str) -> str:
    """A host name or an address as it is compared everywhere: lower case, ASCII (IDNA), no last dot, no brackets.

    Raises:
        ToolError: INVALID_PARAMETER or SECURITY_VIOLATION.
    """
    bare_ipv6 = ":" in text and not text.startswith("[")
    url = read_url(f"https://[{text}]" if bare_ipv6 else f"https://{text}")
    if url.port is not None or url.raw_path != b"/" or "#" in text:
        raise not_an_address("This is more than the name of a host.")
    return host_of(url)


def host_of(url: httpx2.URL) -> str:
    """The host of an address that `read_url` made."""
    return url.raw_host.decode("ascii")


def port_of(url: httpx2.URL) -> int:
    """The port, also where the address leaves it out."""
    return url.port or DEFAULT_PORTS[url.scheme]


def origin_of(url: httpx2.URL) -> tuple[str, str, int]:
    """(scheme, host, port): what is equal belongs to the same server."""
    return url.scheme, host_of(url), port_of(url)


def literal(host: str) -> IPv4Address | IPv6Address | None:
    """The address that the host is, if it is none by name."""
    try:
        return IPv6Address(host) if ":" in host else IPv4Address(host)
    except ValueError:
        return None


def _plain(host: str) -> str:
    host = host.lower()
    address = literal(host)
    if address is not None:
        if isinstance(address, IPv6Address) and address.scope_id:
            raise refused("The address names a zone of the network.")
        return str(address)
    name = host.removesuffix(".")
    labels = name.split(".")
    if not name or len(name) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise not_an_address("The host of the address is not a host's name.")
    # What ends in a number is read as an address by some: 127.1, 2130706433, 0x7f.1, 0177.0.0.1.
    if _NUMBER.fullmatch(labels[-1]):
        raise refused("The host of the address is a number, but no address in its plain form, such as 192.0.2.7.")
    return name
