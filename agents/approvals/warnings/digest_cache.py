"""A cache of what was read from cards, by the digest of each card."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

MAX_CACHED = 4_000

Entry = TypeVar("Entry")


class DigestCache(Generic[Entry]):
    """Entries by organization and digest; it evicts the least recently used one."""

    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[int, str], Entry] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, organization_id: int, digest: str) -> Entry | None:
        """Return the entry of the card with this digest; None if there is none."""
        key = (organization_id, digest)
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def store(self, organization_id: int, digest: str, entry: Entry) -> None:
        """Store the entry of the card with this digest."""
        with self._lock:
            self._entries[organization_id, digest] = entry
            if len(self._entries) > MAX_CACHED:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()
