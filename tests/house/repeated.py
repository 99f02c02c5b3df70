"""Logic that should exist in only one place: the judgment of a call, the engine of deliveries, the
description of an event."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.table import Figure, Listing, Part
from tests.source_tree import ROOT, Module, product

JUDGES = frozenset({"judge", "judge_start"})
"""The methods of a run's context that request a verdict of the gate."""
CONTEXT = "agents/runs/engine/context.py"
TRIES, DELIVERY = "F('tries') + 1", "Delivery"
"""The statement that counts an attempt of a delivery, and the name of delivery models."""
EVENT_TYPES = "EventType"
MANY = 1 / 3
"""The share of event types that a place must name to be counted; a place that names fewer may only
select events."""


def list_judgments() -> list[str]:
    """List the functions that request a verdict on a call."""
    return [
        f"{module.place} {name}"
        for module in product()
        if module.name.startswith("agents.") and module.place != CONTEXT
        for name, function in module.functions
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in JUDGES
        if "context" in (asked := ast.unparse(node.func.value)) or asked == "current"
    ]


def list_engines() -> list[str]:
    """List the files that count attempts of deliveries."""
    return [
        module.place
        for module in product()
        if DELIVERY in module.text
        and any(
            isinstance(node, ast.BinOp) and ast.unparse(node) == TRIES
            for node in ast.walk(module.tree)
        )
    ]


def read_event_types() -> dict[str, str]:
    """Return the value of each event type by its name in the code."""
    classes = (
        node
        for module in product()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    )
    enum = next(node for node in classes if node.name == EVENT_TYPES)
    members = (
        node
        for node in enum.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    )
    return {ast.unparse(node.targets[0]): str(node.value.value) for node in members}  # type: ignore[attr-defined]


def find_types(module: Module, types: dict[str, str]) -> set[str]:
    """Find the event types that the module names."""
    return {
        node.attr
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute)
        and ast.unparse(node.value) == EVENT_TYPES
        and node.attr in types
    }


def list_places(types: dict[str, str]) -> Iterator[tuple[int, str]]:
    """List the files and folders that name event types, with the number of types that each
    names."""
    for module in product():
        yield len(find_types(module, types)), module.place
    for folder in sorted({path.parent for path in (ROOT / "templates").rglob("*.html")}):
        names = {path.stem for path in folder.glob("*.html")}
        yield len(names & set(types.values())), f"{folder.relative_to(ROOT)}/"


def measure_repeated() -> Part:
    """Count and list, by rules of thumb, the places that repeat logic which should exist once."""
    types = read_event_types()
    judgments, engines = list_judgments(), list_engines()
    places = sorted(
        ((number, place) for number, place in list_places(types) if number > 1), reverse=True
    )
    lines = tuple(f"{number:>4}  {place}" for number, place in places)
    describing = [place for number, place in places if number >= MANY * len(types)]
    figures = (
        Figure("places that ask for a verdict on a call", str(len(judgments)), "1"),
        Figure("engines of deliveries", str(len(engines)), "1"),
        Figure(f"places that know a third of the {len(types)} event types", str(len(describing))),
    )
    listings = (
        Listing("Places that ask for a verdict:", tuple(judgments)),
        Listing("Engines of deliveries:", tuple(engines)),
        Listing("Places by the event types that they know:", lines),
    )
    return Part(figures, listings)
