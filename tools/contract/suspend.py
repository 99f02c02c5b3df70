"""What a tool returns that cannot have its result yet: it waits for a person's answer, or for another employee."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Question:
    """A person answers; the answer becomes the call's result.

    Attributes:
        choices: answers that are offered; any other may be given too.
    """

    text: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Delegation:
    """Another employee, by its name, works on the task in a run of its own; its answer becomes the call's result."""

    employee: str
    task: str


@dataclass(frozen=True)
class Steps:
    """The steps of a recipe run one after the other, as calls of their own."""


Suspend: TypeAlias = Question | Delegation | Steps
"""The call waits without a thread or a worker; to be returned by tools that say `suspends`, and only inside a run."""
