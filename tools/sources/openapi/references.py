"""Follows `$ref` inside one document, one step at a time, and never out of it."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

_LONGEST_CHAIN = 50
_LONGEST_REFERENCE = 2_000


class RefusedError(Exception):
    """Why an operation cannot become a tool, for the admin."""


class CycleError(Exception):
    """The reference leads back to where it came from; `at` is what stands there."""

    def __init__(self, at: Any) -> None:
        super().__init__("a reference leads to itself")
        self.at = at


@dataclass(frozen=True)
class Place:
    """What was found, and the references on the way from the root to it."""

    node: Any
    trail: frozenset[str] = field(default_factory=frozenset)


class References:
    """All of one document's.

    Args:
        ends_at: on the monotonic clock; nothing is followed after it.
    """

    def __init__(self, document: Mapping[str, Any], ends_at: float = math.inf) -> None:
        self._document = document
        self._ends_at = ends_at

    def refuse_late(self) -> None:
        """Raises RefusedError: reading the description has taken too long already."""
        if time.monotonic() >= self._ends_at:
            raise RefusedError("the description takes too long to read")

    def follow(self, node: Any, trail: frozenset[str] = frozenset()) -> Place:
        """What the node is, or what it refers to; words beside a reference are kept.

        Raises:
            RefusedError: the reference leads nowhere, or out of the document, or it is too late.
            CycleError: it was followed on the way here already.
        """
        self.refuse_late()
        place = Place(node, trail)
        for _ in range(_LONGEST_CHAIN):
            reference = place.node.get("$ref") if isinstance(place.node, dict) else None
            if not isinstance(reference, str):
                return place
            target = self._at(reference)
            if reference in place.trail:
                raise CycleError(target)
            place = Place(_beside(place.node, target), place.trail | {reference})
        raise RefusedError(f"the reference {node.get('$ref')!r} goes through more than {_LONGEST_CHAIN} others")

    def found(self, node: Any) -> dict[str, Any]:
        """Like `follow`, where only an object makes sense; `{}` if it is none."""
        try:
            at = self.follow(node).node
        except CycleError as error:
            raise RefusedError(str(error)) from None
        return at if isinstance(at, dict) else {}

    def _at(self, reference: str) -> Any:
        if len(reference) > _LONGEST_REFERENCE:
            raise RefusedError(f"it has a reference of {len(reference):,} characters: {reference[:100]!r}…")
        if not reference.startswith("#"):
            raise RefusedError(f"it refers to another document: {reference[:200]!r}")
        node: Any = self._document
        for part in filter(None, unquote(reference[1:]).split("/")):
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict) and key in node:
                node = node[key]
            elif isinstance(node, list) and key.isascii() and key.isdigit() and int(key) < len(node):
                node = node[int(key)]
            else:
                raise RefusedError(f"it refers to {reference[:200]!r}, which is not there")
        return node


def _beside(node: dict[str, Any], target: Any) -> Any:
    """OpenAPI 3.1 lets a reference stand beside other words; a description there is the better one in any version."""
    words = {key: value for key, value in node.items() if key != "$ref" and not key.startswith("x-")}
    if not words or not isinstance(target, dict):
        return target
    if words.keys() <= {"description", "summary", "default", "deprecated", "nullable"}:
        return {**target, **words}
    return {"allOf": [target, words]}
