"""Previews: the effect of a call, computed before a person decides and again before the call starts."""

from dataclasses import asdict, dataclass, field
from typing import Any, Self

from tools.contract.canonical import fingerprint

NO_PREVIEW = "This tool has no preview."
"""The problem of a tool that shows its params alone; every other problem means that the effect is unknown."""


@dataclass(frozen=True)
class Target:
    """One item that the call would affect.

    Attributes:
        id: the row's id as text; empty if the item does not exist yet.
        label: the name shown to people.
        version: the current version; a higher one later means that the item has changed since.
        before, after: the fields that would change, with their values. A creation has only `after`, a deletion only
            `before`.
    """

    id: str
    label: str
    version: int | None = None
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Preview:
    """The effect of one call. The card's digest seals all of it, so it must not contain relative times or counters.

    Attributes:
        effect: create, update, delete, or another verb for the card.
        targets: every item that would be affected, at most 1,000.
        reversible: True if the change can be undone inside Gadget.
        problem: the reason why there is no preview; empty if there is one.
    """

    effect: str
    targets: tuple[Target, ...] = ()
    reversible: bool = True
    problem: str = ""

    @property
    def total(self) -> int:
        return len(self.targets)

    @property
    def seal(self) -> str:
        """A hash over the whole preview; equal seals mean equal effects."""
        return fingerprint(self.as_json())

    def as_json(self) -> dict[str, Any]:
        return {
            "effect": self.effect,
            "targets": [asdict(target) for target in self.targets],
            "total": self.total,
            "reversible": self.reversible,
            "problem": self.problem,
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Self:
        targets = tuple(Target(**target) for target in stored["targets"])
        return cls(stored["effect"], targets, stored["reversible"], stored["problem"])

    @classmethod
    def impossible(cls, problem: str) -> Self:
        """Build the preview of a call whose effect is unknown; the card warns about it."""
        return cls(effect="unknown", reversible=False, problem=problem)
