"""Resolution of `$ref` within one document, one step at a time."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

_MAX_CHAIN = 50
_MAX_REFERENCE_LENGTH = 2_000


class UnsupportedOperationError(Exception):
    """An operation that cannot become a tool; the message gives the reason, for the admin."""


class CycleError(Exception):
    """A circular reference; `at` is the node that it leads to."""

    def __init__(self, at: Any) -> None:
        super().__init__("a reference leads to itself")
        self.at = at


@dataclass(frozen=True)
class ResolvedNode:
    """A node, with the references that lead from the root to it."""

    node: Any
    trail: frozenset[str] = field(default_factory=frozenset)


class References:
    """The references of one document.

    Args:
        ends_at: a processor time of this thread, after which references are not resolved.
    """

    def __init__(self, document: Mapping[str, Any], ends_at: float = math.inf) -> None:
        self._document = document
        self._ends_at = ends_at

    def check_time(self) -> None:
        """Raise UnsupportedOperationError if reading the description has taken too long."""
        if time.thread_time() >= self._ends_at:
            raise UnsupportedOperationError("the description takes too long to read")

    def resolve(self, node: Any, trail: frozenset[str] = frozenset()) -> ResolvedNode:
        """Resolve the node if it is a reference; keywords next to it are kept.

        Raises:
            UnsupportedOperationError: the reference is broken or leaves the document, or the time
                is up.
            CycleError: the reference is already part of the trail.
        """
        self.check_time()
        resolved = ResolvedNode(node, trail)
        for _ in range(_MAX_CHAIN):
            reference = resolved.node.get("$ref") if isinstance(resolved.node, dict) else None
            if not isinstance(reference, str):
                return resolved
            target = self._look_up(reference)
            if reference in resolved.trail:
                raise CycleError(target)
            resolved = ResolvedNode(
                _add_siblings(resolved.node, target), resolved.trail | {reference}
            )
        raise UnsupportedOperationError(
            f"the reference {node.get('$ref')!r} leads through more than {_MAX_CHAIN} others"
        )

    def resolve_object(self, node: Any) -> dict[str, Any]:
        """Resolve the node to an object; return `{}` for anything else.

        Raises:
            UnsupportedOperationError: as for `resolve`, and for a circular reference.
        """
        try:
            target = self.resolve(node).node
        except CycleError as error:
            raise UnsupportedOperationError(str(error)) from None
        return target if isinstance(target, dict) else {}

    def _look_up(self, reference: str) -> Any:
        if len(reference) > _MAX_REFERENCE_LENGTH:
            raise UnsupportedOperationError(
                f"it has a reference of {len(reference):,} characters: {reference[:100]!r}…"
            )
        if not reference.startswith("#"):
            raise UnsupportedOperationError(f"it refers to another document: {reference[:200]!r}")
        node: Any = self._document
        for part in filter(None, unquote(reference[1:]).split("/")):
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict) and key in node:
                node = node[key]
            elif (
                isinstance(node, list) and key.isascii() and key.isdigit() and int(key) < len(node)
            ):
                node = node[int(key)]
            else:
                raise UnsupportedOperationError(f"it has a broken reference: {reference[:200]!r}")
        return node


def _add_siblings(node: dict[str, Any], target: Any) -> Any:
    """Combine a reference's target with the keywords next to the reference, as OpenAPI 3.1 allows.

    Descriptive keywords replace the target's; with any other keyword, both must hold.
    """
    words = {
        key: value for key, value in node.items() if key != "$ref" and not key.startswith("x-")
    }
    if not words or not isinstance(target, dict):
        return target
    if words.keys() <= {"description", "summary", "default", "deprecated", "nullable"}:
        return {**target, **words}
    return {"allOf": [target, words]}
