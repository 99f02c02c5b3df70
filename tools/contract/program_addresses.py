"""Addresses that run a program or open an app instead of a web page, such as `javascript:` and
`data:text/html`.

A colon after a word is ordinary in texts. So a word is taken for a scheme only where an address
must stand, or if the text after it can only be a program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.contract.contacts import find_numbered_host
from tools.contract.named_hosts import is_address_name
from tools.contract.outside_text import quote_excerpt
from tools.contract.param_words import HOST_WORDS, split_name
from tools.contract.spelled_addresses import list_readings
from tools.contract.web_authorities import find_two_readings

_OPENED = frozenset(
    ["http", "https", "ftp", "ws", "wss", "mailto", "tel", "sms", "urn", "arn", "did", "tag"]
)
"""Schemes without `//` that open pages, write to people, or name things."""
_HOST_NAMES = (HOST_WORDS - {"website", "site"}) | {"ip", "proxy", "nameserver", "endpoint"}
"""Words in the names of params in whose values a colon may stand between a host and a port or
folder."""
_GAP = r"[\t\r\n]*"
"""The characters that browsers leave out within a scheme."""
_MEDIA = "(?<=data:)(?:image/(?!svg)|audio/|video/|font/)"
"""The start of an address that contains an image, a video, a sound or a font, which is ordinary."""
_SCHEME = re.compile(
    rf"[\x00-\x20]*([a-z](?:{_GAP}[a-z0-9+.-]){{1,40}}){_GAP}:(?=[^\s\d])"
    rf"(?!//|:|{_MEDIA})",
    re.IGNORECASE,
)
_LINK = re.compile(
    r"\]\(\s*<?|^ {0,3}\[[^\]\n]{1,200}\]:\s*<?(?=\S+\s*(?:[\"'(]|$))"
    r"|<[a-z][^<>]{0,400}?\s(?:href|src|(?:form)?action)\s*=\s*[\"']?",
    re.IGNORECASE | re.MULTILINE,
)
"""The text before an address in Markdown and HTML."""
_SCRIPT = re.compile(
    rf"\b((?:[a-z]{_GAP}){{0,20}}{_GAP.join('script')}){_GAP}:(?=[(=]|[^\s`]\S{{0,400}}[(=`])",
    re.IGNORECASE,
)
_DATA = re.compile(
    rf"\b(data):(?!{_MEDIA})(?:[a-z]+/[\w.+-]+)?(?:;[\w.+=-]+)*,(?=\S)", re.IGNORECASE
)
"""An address that contains the page itself."""


def find_programs(name: str, text: str) -> Iterator[str]:
    """Explain each address in a value that does not open a web page, and a host in disguised
    numbers or after spaces.

    Args:
        name: the name of the value's param or field, which may say that the value is an address.
    """
    if opened := find_numbered_host(name, text):
        yield f"{quote_excerpt(text.strip())} leads to {quote_excerpt(opened)}"
    if ":" not in text and "&" not in text and "%" not in text:
        return
    is_link = is_address_name(name) and not split_name(name) & _HOST_NAMES
    if is_link and "@" in text:
        hidden = find_two_readings(text, is_address=True).keys() - find_two_readings(text).keys()
        yield from (
            f"{quote_excerpt(each)} leads to different hosts in different programs"
            for each in hidden
        )
    found: dict[str, None] = {}
    for reading in list_readings(text):
        starts = [0] if is_link else []
        starts += [match.end() for match in _LINK.finditer(reading)]
        schemes = [
            match[1] for start in starts if (match := _SCHEME.match(reading, start)) is not None
        ]
        schemes += [match[1] for pattern in (_SCRIPT, _DATA) for match in pattern.finditer(reading)]
        found |= dict.fromkeys("".join(scheme.split()).lower() for scheme in schemes)
    yield from (f"{scheme}: opens no web page" for scheme in found if scheme not in _OPENED)
