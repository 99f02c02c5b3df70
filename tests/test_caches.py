"""Values that depend on the database, files or time are cached only in a `Cache`, which tests
clear. These tests read only the sources.

`functools` may cache values that depend only on arguments, code and settings.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.house.speed import CACHES, find_name
from tests.source_tree import ROOT, Module, assert_none, product
from tools.caches import LONGEST_SHORT, MOST_LONG, cache_by_text

READING = frozenset(
    {
        "objects",
        "_default_manager",
        "cursor",
        "open",
        "read_text",
        "read_bytes",
        "now",
        "Now",
        "monotonic",
        "time",
    }
)
"""Names that show that a function reads the database, a file or the clock."""
MAPPINGS = frozenset(
    {
        "dict",
        "OrderedDict",
        "defaultdict",
        "Counter",
        "WeakKeyDictionary",
        "WeakValueDictionary",
        "set",
    }
)
KEPT = {
    "agents/providers/scripted.py _failed_times": "how often each script has failed so far, which nothing else knows",
    "agents/deliveries/outboxes.py OUTBOXES": "what registered itself at the start",
    "agents/runs/origins.py ORIGINS": "what registered itself at the start",
    "agents/web/sockets/feeds.py _feeds": "the feeds that are open",
    "agents/web/sockets/feeds.py _background": "the tasks that run",
    "tools/toolbox/threads.py _abandoned": "the threads that still run after their time",
}
"""Module-level mappings and sets that begin empty but are not caches."""
HOME = "tools/caches.py"


def list_cached_reads(module: Module) -> Iterator[str]:
    """List the functions that are decorated with `cache` or `lru_cache` but read the database, a
    file or the clock."""
    for name, function in module.functions:
        if not CACHES & {find_name(decorator) for decorator in function.decorator_list}:
            continue
        used = {getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(function)}
        if used & READING:
            yield f"{module.place}:{function.lineno} {name} is cached and uses {', '.join(sorted(used & READING))}"


def list_growing_mappings(module: Module) -> Iterator[str]:
    """List the module-level mappings and sets that begin empty, and every use of OrderedDict, from
    which caches are often built."""
    for node in module.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and is_empty_mapping(node.value):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            yield f"{module.place} {ast.unparse(target)}"
    for call in ast.walk(module.tree):
        if isinstance(call, ast.Call) and find_name(call.func) == "OrderedDict":
            yield f"{module.place}:{call.lineno} OrderedDict"


def is_empty_mapping(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Dict):
        return not value.keys
    return isinstance(value, ast.Call) and not value.args and find_name(value.func) in MAPPINGS


def test_functions_do_not_cache_data_that_they_read() -> None:
    offences = [offence for module in product() for offence in list_cached_reads(module)]
    assert_none(
        offences, f"what the database, files or the clock decide is remembered in a Cache of {HOME}"
    )


def test_module_level_mappings_are_not_used_as_caches() -> None:
    found = [
        each
        for module in product()
        if module.place != HOME
        for each in list_growing_mappings(module)
    ]
    assert_none(
        sorted({*found} - KEPT.keys()), f"what is remembered by key is in a Cache of {HOME}"
    )
    assert set(found) >= KEPT.keys(), "each exception still exists"


@pytest.mark.parametrize(
    ("source", "is_refused"),
    [
        ("@lru_cache(maxsize=1)\ndef load(): return Run.objects.count()", True),
        ("@functools.cache\ndef read(path): return Path(path).read_text()", True),
        ("@cache\ndef find(): return time.monotonic()", True),
        ("def load(): return Run.objects.count()", False),
        ("@cache\ndef compile(pattern): return re.compile(pattern)", False),
        ("_seen: dict[int, int] = {}", True),
        ("_seen = defaultdict()", True),
        ("_seen: set[int] = set()", True),
        ("class Newest:\n    def __init__(self): self._values = OrderedDict()", True),
        ("NAMES = {1: 'one'}", False),
        ("_seen: Cache[int, int] = Cache(10)", False),
        ("def count():\n    found = {}\n    return found", False),
    ],
)
def test_caches_are_recognized(source: str, is_refused: bool) -> None:
    module = Module(ROOT / "agents" / "example.py", "agents.example", source, ast.parse(source))
    assert bool([*list_cached_reads(module), *list_growing_mappings(module)]) is is_refused


@pytest.mark.parametrize(("length", "is_kept"), [(LONGEST_SHORT, True), (LONGEST_SHORT + 1, False)])
def test_only_a_few_long_texts_are_cached_by_text(length: int, *, is_kept: bool) -> None:
    computed = []

    @cache_by_text
    def read(text: str) -> int:
        computed.append(text)
        return len(text)

    texts = [f"{number:0{length}}" for number in range(MOST_LONG + 1)]
    for text in (*texts, texts[0]):
        assert read(text) == length
    assert computed.count(texts[0]) == (1 if is_kept else 2)
