"""The parts of web addresses between their slashes and their paths, in a text, as browsers and
other programs read them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.contract.host_endings import ENDINGS

HOST_PATTERN = r"(?:[\w-]{1,63}\.){1,126}[\w-]{2,63}"
MOST_CHARACTERS = 253
"""The maximum length of a host's name."""
LONGEST_READ = 500
"""The maximum length of what is read as the host after `//` or a scheme without `//`."""
_AUTHORITY = r"(?=([^\s/?#<>\"'\\]+))"
_URL = re.compile(rf"\b[a-z][a-z0-9+.-]{{1,20}}:[/\\]{{2,}}{_AUTHORITY}", re.IGNORECASE)
_SHORT_URL = re.compile(
    r"(?:\b(?:https?|wss?|ftp):[/\\]?|(?<![\w:/\\])(?://|\\\\))(?![/\\])"
    rf"(?=([^\s/?#<>\"'\\]{{1,{LONGEST_READ}}}))",
    re.IGNORECASE,
)
"""`https:host` and `//host`, which a browser opens like an address with two slashes."""
_ODD_SLASHES = re.compile(rf"[\x00-\x20]*((?:[/\\]{{3,}}|/\\|\\/)(?![/\\]){_AUTHORITY})")
"""A value that begins with other slashes than `//`, which a browser reads as `//`."""
_IPV4_IN_ONE_NUMBER = re.compile(r"(?:0x[0-9a-f]{7,8}|\d{8,11})(?!\w)", re.IGNORECASE)
_SHARE_PORT = re.compile(r"@(?:ssl|\d{1,5})(?:@\d{1,5})?$", re.IGNORECASE)
"""The port in the host of a Windows share: `\\\\host@SSL\\folder`."""
_LONGEST_LINK_TEXT = 400
_TWO_READINGS = re.compile(
    r"\b(?!file:)(?:[a-z][a-z0-9+.-]{1,20}:[/\\]{2,}|(?:https?|wss?|ftp):[/\\]?)(?P<first>[^\s/?#@\\\"'<>]{1,400})"
    r"(?:(?:\\[^\s/]{0,400}|[?#][^\s/=&]{0,400})@(?P<second>[\w.-]{1,400})"
    rf"|(?P<signs>[\"'<>][^\w\s/?#@,]{{0,20}}@|[\"'][\w-]{{0,63}}\.|\\\.)(?P<other>{HOST_PATTERN}))",
    re.IGNORECASE,
)
"""A web address with an `@` or a dot after a sign that ends the host only in some programs."""
_CLOSING = {'"': '"', "'": "'", "<": ">", "=": ">", "\u201c": '"', "(": "'\""}
"""The signs that merely close what the sign before an address opens."""
_START = re.compile(
    r"(?!file:)[a-z][a-z0-9+.-]{1,20}:[/\\]{2,}|(?:https?|wss?|ftp):[/\\]?|/[/\\]+",
    re.IGNORECASE,
)
_END_OF_AUTHORITY = re.compile(r"[/?#]")
_ENDING_SIGNS = re.compile(r"[\s\"'<>\\]")
_HOST_AND_PORT = re.compile(rf"({HOST_PATTERN})(?::\d{{0,5}})?")


def find_authorities(text: str) -> Iterator[str]:
    """Yield the part of each web address after its slashes, as it is written."""
    if ":" in text:
        for found in _URL.finditer(text):
            yield _trim(text, found)
    if ":" in text or "//" in text or "\\\\" in text:
        for found in _SHORT_URL.finditer(text):
            authority = _trim(text, found)
            if found[0] == "\\\\":
                authority = _SHARE_PORT.sub("", authority)
            if _is_public(authority):
                yield authority
    if (odd := _ODD_SLASHES.match(text)) and _is_public(odd[2]):
        yield _trim(text, odd, 2)


def _is_public(authority: str) -> bool:
    return "." in authority or _IPV4_IN_ONE_NUMBER.match(authority) is not None


def _trim(text: str, found: re.Match[str], group: int = 1) -> str:
    """Leave out what follows `[`, `]` or `|`, which end an address in a link. If an `@` follows,
    the sign may also belong to the user's name, unless a bracket before the address is open."""
    authority = found[group]
    start = (authority.find("]") + 1 or 1) if authority.startswith("[") else 0
    at = min((at for sign in "[]|" if (at := authority.find(sign, start)) >= 0), default=-1)
    if at < 0 or ("@" in authority[at:] and not _is_in_brackets(text, found.start())):
        return authority
    return authority[:at]


def _is_in_brackets(text: str, end: int) -> bool:
    before = text[max(0, end - _LONGEST_LINK_TEXT) : end]
    return any(before.rfind(sign) > before.rfind(close) for sign, close in ("[]", "<>"))


def find_two_readings(text: str, *, is_address: bool = False) -> dict[str, str]:
    """Find each address that leads to different hosts in different programs, and the host that is
    easily overlooked.

    Args:
        is_address: True if the text must be one address, even if it contains spaces.
    """
    found = dict(_list_two_readings(text))
    if "@" in text:
        found.update(_read_whole(text, is_address=is_address))
    return found


def _list_two_readings(text: str) -> Iterator[tuple[str, str]]:
    if "@" in text or "'" in text or '"' in text or "\\." in text:
        for found in _TWO_READINGS.finditer(text):
            if host := found["second"] or _read_other(text, found):
                yield found[0], host


def _read_other(text: str, found: re.Match[str]) -> str:
    signs, host = found["signs"], found["other"]
    closing = _CLOSING.get(text[found.start() - 1 : found.start()], "") if found.start() else ""
    is_host = host.rpartition(".")[2].lower() in ENDINGS
    is_split = signs[0] != "\\" or found["first"].rpartition(".")[2].lower() in ENDINGS
    return host if is_host and is_split and signs[0] not in closing else ""


def _read_whole(text: str, *, is_address: bool) -> Iterator[tuple[str, str]]:
    """Read a value that is one address by the rule of browsers: its host stands after the last `@`
    before the path, whatever else stands before it."""
    plain = text.strip()
    if (start := _START.match(plain)) is None:
        return
    authority = _END_OF_AUTHORITY.split(plain[start.end() :], maxsplit=1)[0]
    name, _, last = authority.rpartition("@")
    host = _HOST_AND_PORT.fullmatch(last)
    has_spaces = name != name.rstrip()
    if host is None or not _ENDING_SIGNS.search(name) or (len(name.split()) > 1 and not is_address):
        return
    if is_address or not has_spaces or len(plain[start.end() + len(authority) :].split()) < 2:
        yield f"{start[0]}{authority}", host[1]


def find_odd_slashes(text: str) -> tuple[str, str]:
    """Find an address that is a whole value and begins with slashes that do not seem to begin an
    address: its start as it is written, and the part after the slashes; empty if there is none."""
    found = _ODD_SLASHES.match(text)
    return (
        (found[1] + found[2], _trim(text, found, 2)) if found and _is_public(found[2]) else ("", "")
    )
