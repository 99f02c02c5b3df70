"""A bounded cache of rendered HTML, shared by the threads of a process."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable

from django.utils.safestring import SafeString

MAX_CHARACTERS = 8_000_000
"""The most HTML cached in one process; source texts are not stored."""


class HtmlCache:
    """Rendered HTML by the hash of its source text. It evicts the least recently used entry."""

    def __init__(self, max_characters: int = MAX_CHARACTERS) -> None:
        self._limit, self._size = max_characters, 0
        self._entries: OrderedDict[bytes, SafeString] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, text: str, render: Callable[[str], SafeString], variant: int = 0) -> SafeString:
        """Return the cached HTML of this text, or render and cache it.

        Args:
            variant: a number for each way to render the same text.
        """
        key = hashlib.sha256(f"{variant}:{text}".encode("utf-8", "surrogatepass")).digest()
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        html = render(text)
        with self._lock:
            self._size += len(html) - len(self._entries.pop(key, ""))
            self._entries[key] = html
            while self._size > self._limit:
                _, oldest = self._entries.popitem(last=False)
                self._size -= len(oldest)
        return html
