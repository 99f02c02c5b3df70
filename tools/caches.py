"""Caches of values that depend on the database, files or time. They have a maximum size, are safe
to use from many threads, and can all be cleared together.

`functools.cache`, `lru_cache` and `cache_by_text` are for values that depend only on arguments,
code and settings.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Generic, Protocol, TypeVar
from weakref import WeakSet

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

LONGEST_SHORT = 200
MOST_SHORT, MOST_LONG = 4096, 16
"""The maximum number of short texts (up to 200 characters) and of longer texts that one function
caches."""


class Clearable(Protocol):
    """An object that can be cleared, because its values can be loaded or computed again."""

    def clear(self) -> None: ...


_registered: WeakSet[Clearable] = WeakSet()


def register(clearable: Clearable) -> None:
    """Let `clear_caches` clear this object, too."""
    _registered.add(clearable)


def clear_caches() -> None:
    """Clear all caches of this process. Tests need this, because their databases use the same ids
    for different rows."""
    for clearable in list(_registered):
        clearable.clear()


def cache_by_text(function: Callable[[str], Value]) -> Callable[[str], Value]:
    """Cache the results of a function that takes one text, for many short texts but only a few long
    ones. Strangers write the texts, so the memory must be limited."""
    of_short, of_long = lru_cache(MOST_SHORT)(function), lru_cache(MOST_LONG)(function)

    @wraps(function)
    def get_value(text: str) -> Value:
        return (of_short if len(text) <= LONGEST_SHORT else of_long)(text)

    return get_value


class Cache(Generic[Key, Value]):
    """A cache of values by key; the least recently used values are dropped to make room for new
    values.

    A value that may become outdated must contain its version or expiry time, or have it in its key.

    Args:
        size: the maximum sum of the values' weights.
        weigh: returns the weight of a value; each value weighs 1 by default.
    """

    def __init__(self, size: int, weigh: Callable[[Value], int] = lambda _: 1) -> None:
        self._size, self._weigh, self._weight = size, weigh, 0
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()
        register(self)

    def get(self, key: Key) -> Value | None:
        """Return the value of this key, or None if the key has no value."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def put(self, key: Key, value: Value) -> None:
        """Store the value, in place of an earlier value of this key."""
        with self._lock:
            self._remove(key)
            self._values[key] = value
            self._weight += self._weigh(value)
            while self._weight > self._size:
                self._remove(next(iter(self._values)))

    def get_or_load(self, key: Key, load: Callable[[], Value]) -> Value:
        """Return the value of this key; load and store it if it is missing or None. Two threads may
        both load it."""
        value = self.get(key)
        if value is None:
            value = load()
            self.put(key, value)
        return value

    def remove(self, key: Key) -> None:
        """Remove the value of this key, if there is one."""
        with self._lock:
            self._remove(key)

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._values.clear()
            self._weight = 0

    def _remove(self, key: Key) -> None:
        if key in self._values:
            self._weight -= self._weigh(self._values.pop(key))
