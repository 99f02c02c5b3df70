"""The code's optimizations: compiled queries, and caches."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.table import Figure, Listing, Part
from tests.source_tree import Module, modules, product

COMPILED = "CompiledQuery"
CACHES = frozenset({"cache", "cache_by_text", "lru_cache"})
CLASS = "Cache"
EMPTYING = "clear_caches"
"""The fixture in `tests/conftest.py` that empties caches before each test."""


def find_name(node: ast.expr) -> str:
    """Return the last part of a called or subscripted name, such as `lru_cache` for
    `functools.lru_cache(maxsize=1)`."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return ast.unparse(node).rpartition(".")[2]


def list_calls(module: Module, name: str) -> list[int]:
    """List the line numbers of the calls of this name."""
    calls = (node for node in ast.walk(module.tree) if isinstance(node, ast.Call))
    return [node.lineno for node in calls if find_name(node.func) == name]


def defines(module: Module, name: str) -> bool:
    return any(
        isinstance(node, ast.ClassDef) and node.name == name for node in ast.walk(module.tree)
    )


def is_of_queries(module: Module) -> bool:
    """Return True for a file of `agents/` that is named for its queries, or lies in such a
    folder."""
    return module.name.startswith("agents.") and "queries" in module.name


def measure_queries() -> Part:
    """Count the compiled queries, and the lines of their files."""
    holders = [(module, len(list_calls(module, COMPILED))) for module in product()]
    holders = [
        (module, number) for module, number in holders if number or defines(module, COMPILED)
    ]
    of_queries = [module for module in product() if is_of_queries(module)]
    figures = (
        Figure(
            "compiled queries", str(sum(number for _, number in holders)), "the hot ones, about 6"
        ),
        Figure(
            "lines of files that hold or define compiled queries",
            f"{sum(count(m) for m, _ in holders):,}",
        ),
        Figure("lines of files of agents/ named queries", f"{sum(map(count, of_queries)):,}"),
    )
    lines = tuple(
        f"{number:>4}  {module.place}, {count(module)} lines" for module, number in holders
    )
    return Part(figures, (Listing("Compiled queries by file:", lines),))


def count(module: Module) -> int:
    return len(module.text.splitlines())


def list_caches(module: Module) -> Iterator[str]:
    """List functions that are cached, and variables of the module or of a class that are named or
    typed as a cache."""
    for name, function in module.functions:
        if CACHES & {find_name(decorator) for decorator in function.decorator_list}:
            yield f"{module.place} {name}"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.col_offset == 0 and is_cache(node):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            yield f"{module.place} {ast.unparse(target)}"
        elif isinstance(node, ast.Call) and find_name(node.func) in CACHES and node.args:
            yield f"{module.place} line {node.lineno}"


def is_cache(node: ast.Assign | ast.AnnAssign) -> bool:
    """Return True if the variable is named for a cache, or holds an object whose class is named for
    a cache."""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    if not isinstance(node.value, ast.Call | ast.Dict):
        return False
    made = find_name(node.value.func) if isinstance(node.value, ast.Call) else ""
    return made not in CACHES and "cache" in f"{ast.unparse(target)} {made}".lower()


def count_emptied() -> int:
    """Count the statements with which the fixture empties caches one by one."""
    conftest = next(module for module in modules() if module.place == "tests/conftest.py")
    bodies = [function.body for name, function in conftest.functions if name == EMPTYING]
    return sum(
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        for body in bodies
        for node in body
    )


def count_cleared() -> int:
    """Count the other places in tests that empty the cache of a function."""
    return sum(
        len(list_calls(module, "cache_clear"))
        for module in modules()
        if module.name.startswith("tests.")
    )


def count_calls(name: str) -> int:
    return sum(len(list_calls(module, name)) for module in product())


def measure_caches() -> Part:
    """Count the caches, and those that tests empty one by one."""
    caches = [cache for module in product() for cache in list_caches(module)]
    figures = (
        Figure("caches", str(len(caches))),
        Figure(
            "of these, in the class of tools/caches.py",
            str(count_calls(CLASS)),
            "all of what is read",
        ),
        Figure("caches that a fixture empties by hand", str(count_emptied()), "1 reset"),
        Figure("other places in tests that empty one", str(count_cleared())),
    )
    return Part(figures, (Listing("Caches:", tuple(sorted(caches))),))
