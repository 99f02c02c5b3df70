"""Values that stand for everything: wildcards, patterns that match any text, networks that contain
all addresses, and numbers without an end."""

from __future__ import annotations

import math
import re
from ipaddress import IPv4Address, IPv6Network, ip_address, ip_network
from urllib.parse import unquote

from tools.caches import cache_by_text
from tools.contract.look_alikes import fold_characters
from tools.schemas.patterns import compile_linear_pattern

MAX_TEXT = 80
"""The maximum number of characters in a wildcard; longer texts are prose or code."""
MAX_LIST = 20_000
"""The maximum number of characters in a list of values in a text."""
MIN_ENTRIES = 2
MAX_PATTERN = 2_000
MAX_NUMBER = 400
WIDEST_V4, WIDEST_V6 = 1, 3
"""The prefixes of the smallest networks that count as all addresses: half of the older addresses,
and all newer addresses that are in use."""
_SAMPLES = ("a", "Zq7 x", "7-é_:")
"""Texts with nothing in common: a pattern that matches each of them matches any text."""
_GLOB = re.compile(r"(?P<place>[^*\s]*[/\\.:])?(?:\*{1,2}[/\\.:])*\*{1,2}")
"""Wildcards alone, or everything in a place: `*`, `reports/**/*`, `repo:*`. A wildcard after
letters, such as `A*`, is a part of a name, and three or more stars stand for hidden text."""
_SIGNS_AROUND = re.compile(r"(?!.*\*{3})(?=.*\*)[*?%_/\\.:@|\[\]{}]+")
"""A wildcard among signs that separate parts: `*@*`, `*://*/*`."""
_AROUND = " \t\n\"'"
_VERSION = re.compile(r"[\dvV^~<>=.]*\d\.")
_ANY_IN_QUERY = re.compile(r"_?%{1,2}")
_ENTRIES = re.compile(r"[,;]")
_ANY_ENTRY = re.compile(r"\*{1,2}|\*[@/.:](?:[@/.:*]{0,20}\*)")
_RANKED = re.compile(r"\*\s{0,2};\s{0,2}q=")
"""Everything with a rank, at the end of a list of languages or media types."""
_MEDIA_TYPE = "*/*"
"""Everything in a list of media types, which ends with it in most requests."""
_NETWORK = re.compile(r"([0-9a-fA-F.:]{1,45})\s?/\s?([0-9a-fA-F.:]{1,45})")
_RANGE = re.compile(r"([0-9a-fA-F.:]{1,45})\s?-\s?([0-9a-fA-F.:]{1,45})")
_SHORT_ZERO = re.compile(r"0(?:\.0){0,2}")
_ALL_PORTS = re.compile(r"0{0,4}[01]\s?[-:]\s?65535")
_MAPPED = IPv6Network("::ffff:0:0/96")
_SEEMS_PATTERN = re.compile(r"^\^.*[*+|?{]|[*+|?{].*\$$|[.\]})][*+{?]|\\[A-Za-z][*+{]")
_LOOKAHEAD = re.compile(r"\(\?<?=([^()]{0,60})\)")


@cache_by_text
def stands_for_all(text: str) -> bool:
    """Return True if the text, or one value in a list of values in it, stands for everything: `*`,
    `%`, `.*`, `reports/**/*`, `0.0.0.0/0`.

    Only the shape of the whole value matters. A word such as *all* does not stand for everything,
    and `*.pdf` does not either, because it leaves something out.
    """
    if text.isalnum():
        return False
    if len(text) <= MAX_TEXT and _is_wide(unquote(fold_characters(text)).strip(_AROUND)):
        return True
    if "\n" in text or len(text) > MAX_LIST or "*" not in text:
        return False
    if "(" in text:
        return False
    entries = [each.strip(_AROUND) for each in _ENTRIES.split(_RANKED.sub("", text))]
    if len(entries) < MIN_ENTRIES or any(map(_is_prose, entries)):
        return False
    return any(map(_is_wide_entry, entries))


def _is_prose(entry: str) -> bool:
    return len(entry) > MAX_TEXT or any(map(str.isspace, entry))


def _is_wide(value: str) -> bool:
    if (glob := _GLOB.fullmatch(value)) is not None:
        return not _VERSION.fullmatch(glob["place"] or "")
    if _SIGNS_AROUND.fullmatch(value) or _ANY_IN_QUERY.fullmatch(value):
        return True
    if _ALL_PORTS.fullmatch(value) or _contains_all(value, has_short=False):
        return True
    return _SEEMS_PATTERN.search(value) is not None and _matches_all(value)


def _is_wide_entry(value: str) -> bool:
    return value != _MEDIA_TYPE and _ANY_ENTRY.fullmatch(value) is not None


def contains_all_addresses(value: str) -> bool:
    """Return True for a network or a range that is as large as the smallest that counts as all
    addresses, also for a short form such as `0/0`."""
    return _contains_all(value, has_short=True)


def _contains_all(value: str, *, has_short: bool) -> bool:
    try:
        if found := _RANGE.fullmatch(value):
            first, last = (ip_address(each) for each in found.groups())
            smallest = 1 << (first.max_prefixlen - _get_widest(first))
            return int(last) - int(first) >= smallest - 1
        if (found := _NETWORK.fullmatch(value)) is None:
            return False
        address = found[1]
        if has_short and _SHORT_ZERO.fullmatch(address):
            address = str(IPv4Address(0))
        network = ip_network(f"{address}/{found[2]}", strict=False)
    except ValueError:
        return False
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        return network.prefixlen - _MAPPED.prefixlen <= WIDEST_V4
    return network.prefixlen <= _get_widest(network.network_address)


def _get_widest(address: object) -> int:
    return WIDEST_V4 if isinstance(address, IPv4Address) else WIDEST_V6


def is_endless(value: str | float) -> bool:
    """Return True for a number that is infinite or no number, also if it is written as text."""
    if isinstance(value, str):
        plain = value.strip()
        if len(plain) > MAX_NUMBER:
            return False
        if "\N{INFINITY}" in plain:
            return not any(map(str.isalnum, plain))
        try:
            value = float(plain)
        except ValueError:
            return False
    return isinstance(value, float) and not math.isfinite(value)


@cache_by_text
def matches_all(pattern: str) -> bool:
    """Return True if a search for this regular expression finds something in any text."""
    if not pattern or len(pattern) > MAX_PATTERN:
        return False
    plain = _LOOKAHEAD.sub(lambda found: "" if matches_all(found[1]) else found[0], pattern)
    compiled = compile_linear_pattern(plain)
    return compiled is not None and all(map(compiled.search, _SAMPLES))


def _matches_all(pattern: str) -> bool:
    compiled = compile_linear_pattern(pattern)
    if compiled is None:
        return False
    is_anchored = pattern.startswith("^") or pattern.endswith("$")
    match = compiled.search if is_anchored else compiled.fullmatch
    return all(map(match, _SAMPLES))
