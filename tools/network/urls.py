"""Parsing of URLs with the HTTP client's own parser, so that it connects to the host that was
checked."""

import re
from ipaddress import IPv4Address, IPv6Address

import httpx2

from tools.network.errors import invalid_address, security_violation

MAX_URL_LENGTH = 8_000
DEFAULT_PORTS = {"http": 80, "https": 443}

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_NOT_IN_URLS = re.compile(r"[\x00-\x20\x7f-\xa0\\]")


def read_url(text: str) -> httpx2.URL:
    """Parse the URL and normalize its host as `parse_host` does.

    Every port is allowed: services use all of them, and forbidden hosts are recognized by their
    addresses. Everything that two parsers could read as different hosts is refused: user
    information, backslashes, control characters, escapes in hosts, and IP addresses in any unusual
    form.

    Raises:
        ToolError: INVALID_PARAMETER or SECURITY_VIOLATION; the text never quotes the URL.
    """
    if len(text) > MAX_URL_LENGTH:
        raise invalid_address(f"The address is longer than {MAX_URL_LENGTH:,} characters.")
    if _NOT_IN_URLS.search(text):
        raise invalid_address("The address contains a space, a backslash or a control character.")
    try:
        url = httpx2.URL(text)
    except (httpx2.InvalidURL, ValueError) as error:
        raise invalid_address(
            "The address cannot be read: its host or port is not valid."
        ) from error
    if url.scheme not in DEFAULT_PORTS:
        raise security_violation(
            "Only addresses that begin with http:// or https:// can be reached."
        )
    if (
        url.userinfo
        or "@" in text.partition("://")[2].partition("/")[0].partition("?")[0].partition("#")[0]
    ):
        raise security_violation(
            "The address contains a user name or a password before its host.", "Leave them out."
        )
    if url.port is not None and not 1 <= url.port <= 65_535:
        raise invalid_address("The port is not a number from 1 to 65535.")
    host = _normalize_host(url.raw_host.decode("ascii"))
    return url.copy_with(host=host, fragment=None)


def parse_host(text: str) -> str:
    """Normalize a host name or IP address: lower case, ASCII (IDNA), no trailing dot or brackets.

    Raises:
        ToolError: INVALID_PARAMETER or SECURITY_VIOLATION.
    """
    bare_ipv6 = ":" in text and not text.startswith("[")
    url = read_url(f"https://[{text}]" if bare_ipv6 else f"https://{text}")
    if url.port is not None or url.raw_path != b"/" or "#" in text:
        raise invalid_address("Expected only a host name.")
    return get_host(url)


def get_host(url: httpx2.URL) -> str:
    """Return the host of a URL from `read_url`."""
    return url.raw_host.decode("ascii")


def get_port(url: httpx2.URL) -> int:
    """Return the port, or the scheme's default."""
    return url.port or DEFAULT_PORTS[url.scheme]


def get_origin(url: httpx2.URL) -> tuple[str, str, int]:
    """Return (scheme, host, port); URLs of the same server have the same origin."""
    return url.scheme, get_host(url), get_port(url)


def parse_ip(host: str) -> IPv4Address | IPv6Address | None:
    """Return the host as an IP address if it is one, or else None."""
    try:
        return IPv6Address(host) if ":" in host else IPv4Address(host)
    except ValueError:
        return None


def _normalize_host(host: str) -> str:
    host = host.lower()
    address = parse_ip(host)
    if address is not None:
        if isinstance(address, IPv6Address) and address.scope_id:
            raise security_violation("The address contains a network zone.")
        return str(address)
    name = host.removesuffix(".")
    labels = name.split(".")
    if not name or len(name) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise invalid_address("The host of the address is not a valid host name.")
    # Some resolvers read hosts that end in a number as addresses: 127.1, 2130706433, 0x7f.1,
    # 0177.0.0.1.
    if _NUMBER.fullmatch(labels[-1]):
        raise security_violation(
            "The host is a number. Write an IP address in its plain form, such as 192.0.2.7."
        )
    return name
