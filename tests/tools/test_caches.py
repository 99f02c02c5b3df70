"""Caches are bounded, discard the least recently used entry, and are all cleared together."""

from __future__ import annotations

import threading

from tools.caches import Cache, clear_caches, register


def test_a_value_is_loaded_once() -> None:
    cache: Cache[str, str] = Cache(2)
    loaded: list[str] = []

    def load() -> str:
        loaded.append("a")
        return "A"

    assert [cache.get_or_load("a", load), cache.get_or_load("a", load)] == ["A", "A"]
    assert loaded == ["a"]


def test_a_full_cache_removes_the_least_recently_used_value() -> None:
    cache: Cache[str, int] = Cache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]


def test_a_cache_is_bounded_by_weight() -> None:
    cache: Cache[str, str] = Cache(10, weigh=len)
    loaded: list[str] = []

    def load(text: str) -> str:
        loaded.append(text)
        return text

    for text in ("aaaa", "bbbb", "aaaa", "cccc", "aaaa", "bbbb", "x" * 11, "aaaa"):
        assert cache.get_or_load(text, lambda text=text: load(text)) == text  # type: ignore[misc]
    assert loaded == ["aaaa", "bbbb", "cccc", "bbbb", "x" * 11, "aaaa"]


def test_a_replaced_or_removed_value_does_not_count_toward_the_weight() -> None:
    cache: Cache[str, str] = Cache(4, weigh=len)
    cache.put("a", "long")
    cache.put("a", "aa")
    cache.put("b", "bb")
    assert (cache.get("a"), cache.get("b")) == ("aa", "bb")
    cache.remove("a")
    cache.put("c", "cc")
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (None, "bb", "cc")


def test_all_caches_are_cleared_together() -> None:
    class Counter:
        count = 3

        def clear(self) -> None:
            self.count = 0

    counter, cache = Counter(), Cache[str, str](5, weigh=len)
    register(counter)
    cache.put("a", "12345")
    clear_caches()
    assert (cache.get("a"), counter.count) == (None, 0)
    cache.put("b", "12345")
    assert cache.get("b") == "12345", "a cleared cache is empty"


def test_concurrent_threads_keep_the_cache_within_its_size() -> None:
    cache: Cache[int, int] = Cache(10)
    start = threading.Barrier(8)

    def use(first: int) -> None:
        start.wait()
        for number in range(2_000):
            cache.get_or_load((first + number) % 40, lambda: 1)

    threads = [threading.Thread(target=use, args=(number * 5,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(cache.get(number) is not None for number in range(40)) == 10
