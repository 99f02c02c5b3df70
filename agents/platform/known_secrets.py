"""Remember the credentials that this process has read, so that its log can redact them.

This module imports nothing from Django, because the log is set up before Django.
"""

from __future__ import annotations

import ipaddress
import json
import re
import threading
from collections.abc import Iterable
from urllib.parse import quote, quote_plus, urlsplit

MAX_OF_ONE = 1_000
"""The maximum number of secrets of one owner. If there are more, the oldest ones are forgotten."""
MAX_OWNERS = 500
INSTALLATION = 0
"""The owner of the secrets that belong to the installation itself."""
SHORTEST_LINE = 16
"""The minimum length, in characters, of a line that is redacted on its own if it belongs to a
secret with several lines."""
SHORTEST_DISTINCTIVE = 16
"""The minimum length of a secret to redact in lines about an unknown organization; a shorter secret
may occur there by chance."""
_HOST = re.compile(
    r"(?i)(localhost|(?=.{1,253}\Z)([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,})\.?(:\d{1,5})?"
)
_PLACEHOLDER = re.compile(
    r"(?i)[\w.+-]+@([a-z0-9-]+\.)+[a-z]{2,}|(application|audio|font|image|text|video)/[a-z0-9.+-]+"
    r"|\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:?\d\d)?"
)
"""E-mail addresses, media types and times. Credentials may contain them, but so may lines about
other organizations."""
_NUMBER = re.compile(r"[\d\s.,+/:()_-]+")
_LONGEST_WORD = 15


class KnownSecrets:
    """The secrets to redact from text. This class is thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_owner: dict[int, dict[str, frozenset[str]]] = {}
        self._forms: dict[int | None, tuple[str, ...]] = {}

    def learn(self, secrets: Iterable[str], owner: int = INSTALLATION) -> None:
        """Add secrets to redact from now on.

        Args:
            owner: the id of the organization that the secrets belong to, or `INSTALLATION`.
        """
        secrets = tuple(secrets)
        with self._lock:
            if self._by_owner.get(owner, {}).keys() >= set(secrets):
                return
            known = self._by_owner.pop(owner, {})
            for secret in secrets:
                known.pop(secret, None)
                known[secret] = list_forms(secret)
            self._by_owner[owner] = dict(list(known.items())[-MAX_OF_ONE:])
            while len(self._by_owner) > MAX_OWNERS:
                del self._by_owner[next(iter(self._by_owner))]
            self._forms = {}

    def redact(self, text: str, placeholder: str, owner: int | None = None) -> str:
        """Return the text with the placeholder in place of secrets.

        Args:
            owner: the organization that the text is about; its secrets and the installation's are
                replaced. If it is None, the organization is unknown, and the distinctive secrets of
                all organizations are replaced: redacting a short or common secret would hide facts
                of other organizations.
        """
        for form in self._forms.get(owner) or self._build_forms(owner):
            if form in text:
                text = text.replace(form, placeholder)
        return text

    def _build_forms(self, owner: int | None) -> tuple[str, ...]:
        """List the forms of secrets to look for. The longest come first, because one form may be
        part of another."""
        with self._lock:
            found = {
                form
                for known_owner, known in self._by_owner.items()
                for secret, forms in known.items()
                if known_owner in (owner, INSTALLATION)
                or (owner is None and is_distinctive(secret))
                for form in forms
            }
            self._forms[owner] = longest_first = tuple(sorted(found, key=len, reverse=True))
            return longest_first


def is_distinctive(secret: str) -> bool:
    """Return True for a secret that is long and unusual enough not to occur in a text by chance."""
    is_common = name_common_kind(secret) or _PLACEHOLDER.fullmatch(secret.strip())
    return len(secret) >= SHORTEST_DISTINCTIVE and not is_common


def name_common_kind(value: str) -> str:
    """Return "an address", "a host name", "a number" or "a word" for a value that also occurs in
    ordinary texts; return "" for any other value.

    Redacting such a value would hide facts instead of a secret.
    """
    text = value.strip()
    parts = urlsplit(text) if "://" in text and "\n" not in text else None
    if parts is not None and not (
        parts.username or parts.password or parts.path.strip("/") or parts.query
    ):
        text = parts.netloc
    if _is_address(text):
        return "an address"
    if _HOST.fullmatch(text):
        return "a host name"
    if _NUMBER.fullmatch(text):
        return "a number"
    return "a word" if text.isalpha() and len(text) <= _LONGEST_WORD else ""


def _is_address(text: str) -> bool:
    host = text.partition("]")[0].lstrip("[") if text.startswith("[") else text
    for candidate in (host, host.rpartition(":")[0]):
        try:
            ipaddress.ip_network(candidate, strict=False)
        except ValueError:
            continue
        return not candidate.isdecimal()
    return False


def list_forms(secret: str) -> frozenset[str]:
    """Return the forms of the secret that a log line may contain: plain, as JSON, as a Python
    literal, and in a URL."""
    lines = (
        [line for line in secret.splitlines() if len(line) >= SHORTEST_LINE]
        if "\n" in secret
        else []
    )
    return frozenset(
        form
        for text in (secret, *lines)
        for form in (
            text,
            json.dumps(text)[1:-1],
            json.dumps(text, ensure_ascii=False)[1:-1],
            repr(text)[1:-1],
            quote(text, safe=""),
            quote_plus(text),
        )
    )


KNOWN_SECRETS = KnownSecrets()
"""The secrets that this process has learned."""
