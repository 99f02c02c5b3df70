"""Remember the credentials that this process has read, so that its log can redact them.

This imports nothing from Django, because the log is set up first.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

MAX_OF_ONE = 1_000
"""Secrets of one owner; beyond that, the owner's oldest are forgotten, never another owner's."""
MAX_OWNERS = 500
SHORTEST_LINE = 16
"""In a secret of several lines, each line of at least this length is a secret too."""


class KnownSecrets:
    """The secrets to redact from text; safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_owner: dict[int, dict[str, frozenset[str]]] = {}
        self._longest_first: tuple[str, ...] = ()

    def learn(self, secrets: Iterable[str], owner: int = 0) -> None:
        """Add secrets to redact from now on.

        Args:
            owner: the id of the organization that they belong to, or 0 for the installation's.
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
            every = {form for known in self._by_owner.values() for found in known.values() for form in found}
            self._longest_first = tuple(sorted(every, key=len, reverse=True))

    def redact(self, text: str, mark: str) -> str:
        """Return the text with the mark in place of every secret."""
        for form in self._longest_first:
            if form in text:
                text = text.replace(form, mark)
        return text


def list_forms(secret: str) -> frozenset[str]:
    """Return the forms in which a line may hold the secret: plain, as JSON, as a Python literal, and in a URL."""
    lines = [line for line in secret.splitlines() if len(line) >= SHORTEST_LINE] if "\n" in secret else []
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
"""The secrets of this process."""
