"""Previews: a call's effect, computed before a person decides and again before the call starts."""

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Self

from pydantic import ConfigDict

from tools.contract.canonical import fingerprint
from tools.contract.errors import ErrorCode, ToolError
from tools.contract.values import CHECKED_AGAIN, Count, PlainObject, Text, WrittenText

NO_PREVIEW = "This tool has no preview."
"""The problem in the preview of a tool that shows only its params; any other problem means that the
effect is unknown."""

REFUSED = "refused"
"""The effect of a call that its tool now refuses; the problem gives the reason."""


@dataclass(frozen=True)
class Target:
    """One item that the call would affect.

    Attributes:
        id: the row's id as text; empty if the item does not exist yet.
        label: the name shown to people.
        version: the current version; if it is higher later, the item has changed in the meantime.
        before, after: the fields that would change, with their values. A creation has only `after`,
            a deletion only `before`.
    """

    __pydantic_config__: ClassVar[ConfigDict] = CHECKED_AGAIN

    id: WrittenText
    label: WrittenText
    version: Count | None = None
    before: PlainObject = field(default_factory=dict)
    after: PlainObject = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        """True if the item already has every value of `after`; False if `after` is empty."""
        return bool(self.after) and all(
            name in self.before and self.before[name] == value for name, value in self.after.items()
        )


@dataclass(frozen=True)
class Preview:
    """The effect of one call.

    The card's digest seals all of it, so it must not contain relative times or counters.

    Attributes:
        effect: create, update, delete, or another verb for the card.
        targets: every item that would be affected, at most 1,000.
        reversible: True if the change can be undone inside Gadget.
        problem: the reason why there is no preview; empty if there is one.
    """

    __pydantic_config__: ClassVar[ConfigDict] = CHECKED_AGAIN

    effect: Text
    targets: tuple[Target, ...] = ()
    reversible: bool = True
    problem: WrittenText = ""

    @property
    def total(self) -> int:
        return len(self.targets)

    @property
    def is_done(self) -> bool:
        """True if every target already has all values that the call would set."""
        return (
            bool(self.targets)
            and not self.problem
            and all(target.is_done for target in self.targets)
        )

    @property
    def seal(self) -> str:
        """A hash over the whole preview; previews with the same seal have the same effect."""
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

    @classmethod
    def refused(cls, problem: str) -> Self:
        """Build the preview of a call that its tool now refuses, so that the call would change
        nothing."""
        return cls(effect=REFUSED, reversible=False, problem=problem)


class NothingToDo(ToolError):
    """An error for `preview` to raise if the call's effect already exists.

    When a call is requested, the model receives the error. When an approved call needs a new
    approval, its card shows the error, and a person can dismiss the card.

    Args:
        message: one sentence, such as "Acme Corp already has these values."
        preview: the targets; in each of them, `before` and `after` hold the wanted values.
    """

    def __init__(self, message: str, preview: Preview) -> None:
        super().__init__(
            ErrorCode.NOTHING_TO_DO,
            message,
            recovery_hint="Nothing needs to be done; continue with the task.",
            attempted=False,
        )
        self.preview = preview
