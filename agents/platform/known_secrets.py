"""The credentials that this process has read, so that its log can hide them.

It imports nothing of Django's: the log is set up before everything else.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

MOST_OF_ONE = 1_000
"""Secrets of one owner; of more, those that were learnt first are forgotten, and never those of others."""
MOST_OWNERS = 500
SHORTEST_LINE = 16
"""Of a secret of several lines, a line that is long enough counts by itself."""


class KnownSecrets:
    """Takes what it has learnt out of texts. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_owner: dict[int, dict[str, frozenset[str]]] = {}
        self._longest_first: tuple[str, ...] = ()

    def learn(self, secrets: Iterable[str], owner: int = 0) -> None:
        """Hide these from now on, beside those that are known already.

        Args:
            owner: whose they are, e.g. an organisation's id.
        """
        secrets = tuple(secrets)
        with self._lock:
            if self._by_owner.get(owner, {}).keys() >= set(secrets):
                return
            known = self._by_owner.pop(owner, {})
            for secret in secrets:
                known.pop(secret, None)
                known[secret] = spellings(secret)
            self._by_owner[owner] = dict(list(known.items())[-MOST_OF_ONE:])
            while len(self._by_owner) > MOST_OWNERS:
                del self._by_owner[next(iter(self._by_owner))]
            every = {spelling for kept in self._by_owner.values() for found in kept.values() for spelling in found}
            self._longest_first = tuple(sorted(every, key=len, reverse=True))

    def hidden(self, text: str, mark: str) -> str:
        """The text with the mark in the place of every secret."""
        for spelling in self._longest_first:
            if spelling in text:
                text = text.replace(spelling, mark)
        return text


def spellings(secret: str) -> frozenset[str]:
    """How a secret may stand in a line: as it is, in JSON, as Python writes it down, and in an address."""
    lines = [line for line in secret.splitlines() if len(line) >= SHORTEST_LINE] if "\n" in secret else []
    return frozenset(
        spelling
        for text in (secret, *lines)
        for spelling in (
            text,
            json.dumps(text)[1:-1],
            json.dumps(text, ensure_ascii=False)[1:-1],
            repr(text)[1:-1],
            quote(text, safe=""),
            quote_plus(text),
        )
    )


KNOWN_SECRETS = KnownSecrets()
"""Of this process."""
