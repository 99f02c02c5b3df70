"""The folders of `agents/` and `tools/`, and the imports between them: cycles, arrows, layers."""

from __future__ import annotations

from collections.abc import Mapping

from tests import test_architecture
from tests.house.table import Figure, Listing, Part
from tests.source_tree import is_within, product

Graph = Mapping[str, frozenset[str]]

DOORS = frozenset({"urls", "routing", "apps", "api", "admin", "mcp_server", "web", "worker"})
"""Folders and files of `agents/` that are not subjects."""


def draw_graph(top: str) -> Graph:
    """Return the graph of dependencies: for each folder, and each file next to the folders, those
    that it imports or that it refers to with a foreign key that follows the order of the layers."""
    arrows: dict[str, set[str]] = {}
    for module in product():
        if not is_within(module.name, f"{top}") or module.name == top:
            continue
        own = module.name.split(".")[1]
        keys = [
            key for key in module.related if not test_architecture.points_up(module.name, key[0])
        ]
        named = (name for name, _ in (*module.imports, *keys))
        below = {name.split(".")[1] for name in named if is_within(name, top) and name != top}
        arrows.setdefault(own, set()).update(below - {own})
    return {folder: frozenset(below & arrows.keys()) for folder, below in arrows.items()}


def find_reachable(graph: Graph, start: str) -> frozenset[str]:
    """Find all folders that `start` imports directly or indirectly; `start` is included only if a
    cycle leads back to it."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return frozenset(found)


def find_knots(graph: Graph) -> list[frozenset[str]]:
    """Find the sets of folders that import each other in cycles, largest first."""
    reachable = {folder: find_reachable(graph, folder) for folder in graph}
    knots = {
        frozenset(
            other for other in graph if other in reachable[folder] and folder in reachable[other]
        )
        for folder in graph
        if folder in reachable[folder]
    }
    return sorted(knots, key=len, reverse=True)


def count_floors(graph: Graph) -> int:
    """Return the number of folders on the longest path of imports; a knot is counted as one
    folder."""
    knots = find_knots(graph)
    names = {
        folder: next((min(knot) for knot in knots if folder in knot), folder) for folder in graph
    }
    below = {
        name: {names[other] for folder in graph if names[folder] == name for other in graph[folder]}
        - {name}
        for name in names.values()
    }
    heights: dict[str, int] = {}

    def measure(name: str) -> int:
        if name not in heights:
            heights[name] = 1 + max((measure(other) for other in below[name]), default=0)
        return heights[name]

    return max(map(measure, below))


def read_floors(top: str) -> tuple[tuple[str, ...], ...]:
    """Read the layers from the architecture test, whose older versions name them `LAYERS`."""
    named = getattr(test_architecture, "FLOORS", None) or getattr(test_architecture, "LAYERS", {})
    floors: tuple[tuple[str, ...], ...] = named.get(top, ())
    return floors


def measure_knots(top: str) -> Part:
    """Measure the folders of `agents` or `tools`."""
    graph, floors = draw_graph(top), read_floors(top)
    knots = find_knots(graph)
    tied = frozenset().union(*knots)
    dotted = [name for names in floors for name in names if "." in name]
    subjects = (
        f" ({len(tied - DOORS)} of {len(graph.keys() - DOORS)} subjects)" if top == "agents" else ""
    )
    figures = (
        Figure(f"{top}: folders in cycles", f"{len(tied)} of {len(graph)}{subjects}", "0"),
        Figure(f"{top}: arrows between folders", str(sum(map(len, graph.values())))),
        Figure(f"{top}: floors in the test of the architecture", str(len(floors)), "at most 10"),
        Figure(f"{top}: floors that the imports need", str(count_floors(graph))),
        Figure(f"{top}: dotted exceptions", str(len(dotted)), "0"),
    )
    listings = tuple(Listing(f"A knot of {top}:", (", ".join(sorted(knot)),)) for knot in knots)
    return Part(figures, listings)
