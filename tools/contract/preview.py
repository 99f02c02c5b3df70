"""What a call would do, computed before a person is asked and again before it is done."""

from dataclasses import asdict, dataclass, field
from typing import Any, Self

from .canonical import fingerprint


@dataclass(frozen=True)
class Target:
    """One thing that the call would touch.

    Attributes:
        id: the row's id as text; empty for a thing that does not exist yet.
        label: its name for people.
        version: its version now; a later one means that it has changed since.
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
    """The effect of one call: everything in it is sealed by the card's digest, so it holds no ages and no counters.

    Attributes:
        effect: create, update, delete, or another verb for the card.
        targets: all that would be touched, at most 1,000.
        reversible: whether the change can be taken back inside Gadget.
        problem: why the effect could not be previewed; empty when it could.
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
        """A hash over all of it; equal seals mean an equal effect."""
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
        """The tool has no preview, or it failed; the card says so aloud."""
        return cls(effect="unknown", reversible=False, problem=problem)
