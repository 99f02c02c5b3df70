"""Email addresses with two hosts, of which mail programs use the last, or with a comment."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.contract.host_endings import ENDINGS
from tools.contract.web_authorities import HOST_PATTERN

_LOCAL = r"(?<![\w.+'@/-])[\w.+'-]{1,64}"
_PUBLIC = r"(?:[\w-]{1,63}\.){1,126}[a-z]{2,63}"
_COMMENT = r"\((?=[^()\s]{0,100}[.@])[^()\s]{1,100}\)"
_TWO_HOSTS = re.compile(
    rf"(?P<local>{_LOCAL})@{_PUBLIC}(?:[\"'>)\]|\\]{{0,5}}@(?P<last>{_PUBLIC}))"
    rf"|(?<![\w.+'@/-])@{_PUBLIC}(?:,@{_PUBLIC}){{0,3}}:[\w.+'-]{{1,64}}@{_PUBLIC}"
    rf"|(?P<name>{_LOCAL})(?:{_COMMENT}@|@{_COMMENT})(?P<host>{HOST_PATTERN})",
    re.IGNORECASE,
)


def find_odd_emails(text: str) -> Iterator[tuple[str, str]]:
    """Yield each address with two hosts, and the address that mail programs read."""
    for found in _TWO_HOSTS.finditer(text) if "@" in text else ():
        name = found["local"] or found["name"]
        host = found["last"] or found["host"]
        if found["host"] and host.rpartition(".")[2].lower() not in ENDINGS:
            continue
        yield found[0], (f"{name}@{host}" if name else found[0].rpartition(":")[2]).lower()
