"""A bounded cache of rendered texts, shared by the threads of a process."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable

from django.utils.safestring import SafeString

MAX_CHARACTERS = 8_000_000
"""The limit on HTML in one process; the source texts are not kept."""


class HtmlCache:
    """HTML by the hash of its text; evicts the least recently used."""

    def __init__(self, max_characters: int = MAX_CHARACTERS) -> None:
        self._most, self._held = max_characters, 0
        self._found: OrderedDict[bytes, SafeString] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, text: str, render: Callable[[str], SafeString], variant: int = 0) -> SafeString:
        """Return the HTML of this text, rendered at most once while it is held.

        Args:
            variant: tells apart several ways to render a text.
        """
        key = hashlib.sha256(f"{variant}:{text}".encode("utf-8", "surrogatepass")).digest()
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
        html = render(text)
        with self._lock:
            self._held += len(html) - len(self._found.pop(key, ""))
            self._found[key] = html
            while self._held > self._most:
                _, oldest = self._found.popitem(last=False)
                self._held -= len(oldest)
        return html
