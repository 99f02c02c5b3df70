"""Find a client's real address and scheme: forwarding headers are believed only if a trusted proxy
sent them."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any

from django.conf import settings

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Headers = list[tuple[bytes, bytes]]

FOR, PROTO = b"x-forwarded-for", b"x-forwarded-proto"
FORWARDED_HEADER = b"x-gadget-forwarded"
"""The header that tells later code that a request had proxy headers, which are dropped. It is
itself dropped if a client sends it."""

PREFIXES = (b"x-forwarded", b"x-original-", b"x-gadget-", b"x-accel-", b"x-ssl-", b"x-client-cert")
NAMES = frozenset(
    b"forwarded via daphne-root-path script-name x-script-name x-rewrite-url x-real-ip x-client-ip x-cluster-client-ip "
    b"true-client-ip cf-connecting-ip cf-connecting-ipv6 cf-visitor fastly-client-ip client-ip x-remote-ip "
    b"x-remote-addr remote-addr remote-user x-remote-user front-end-https x-scheme x-url-scheme x-https x-host".split()
)


class TrustedProxies:
    """Middleware that passes requests on with the client's own address and scheme, without proxy
    headers."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        seen = clean(scope) if scope["type"] in ("http", "websocket") else scope
        return await self._application(seen, receive, send)


def clean(scope: dict[str, Any]) -> dict[str, Any]:
    """Return the ASGI scope without proxy headers, with the client address and scheme that trusted
    proxies report."""
    own: Headers = [header for header in scope["headers"] if not _is_proxy_header(header[0])]
    forwarded: Headers = [header for header in scope["headers"] if _is_proxy_header(header[0])]
    flag = [(FORWARDED_HEADER, b"1")] if forwarded else []
    cleaned = {**scope, "headers": own + flag, "root_path": ""}
    scheme = "https" if settings.GADGET_ORIGIN else scope.get("scheme", "http")
    peer = _parse(scope["client"][0]) if scope.get("client") else None
    if peer is not None and _is_trusted(peer):
        cleaned["client"] = _find_client(scope["client"], peer, _list_words(forwarded, FOR))
        scheme = _choose_scheme(_list_words(forwarded, PROTO), otherwise=scheme)
    secure = {"http": "https", "websocket": "wss"}[scope["type"]]
    plain = {"http": "http", "websocket": "ws"}[scope["type"]]
    cleaned["scheme"] = secure if scheme in ("https", "wss") else plain
    return cleaned


def _is_proxy_header(name: bytes) -> bool:
    name = name.lower().replace(b"_", b"-")
    return name in NAMES or name.startswith(PREFIXES)


def _list_words(headers: Headers, name: bytes) -> list[str]:
    """List the comma-separated words of all headers with this name, in order."""
    values = [value.decode("latin-1") for found, value in headers if found.lower() == name]
    return [word.strip() for value in values for word in value.split(",")]


def _find_client(client: list[Any], peer: Address, forwarded: list[str]) -> list[Any]:
    """Return the client's address: walk back along the forwarded addresses to the first one that is
    not a trusted proxy."""
    found = peer
    for word in reversed(forwarded):
        before = _parse(word)
        if before is None:
            break
        found = before
        if not _is_trusted(found):
            break
    return client if found == peer else [str(found), 0]


def _choose_scheme(forwarded: Iterable[str], otherwise: str) -> str:
    """Return the last forwarded scheme, which the nearest proxy added; `otherwise` if it is missing
    or invalid."""
    last = ([otherwise, *forwarded])[-1].lower()
    return last if last in ("http", "https") else otherwise


def _is_trusted(address: Address) -> bool:
    proxies: Iterable[Network] = settings.GADGET_TRUSTED_PROXIES
    return any(address in network for network in proxies)


def _parse(text: str) -> Address | None:
    """Parse an address such as `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1` or `[2001:db8::1]:80`;
    None if it is invalid."""
    host = text.strip()
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        address = ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
