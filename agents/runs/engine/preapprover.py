"""The interface to the preapprover, which can approve a card in the name of a person who allowed
that in advance.

The preapprover belongs to a layer above runs, and replaces `Nobody` when its app is ready.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from agents.runs.models import Approval, Run
from tools.contract import Tool
from tools.toolbox.objections import Objection
from tools.toolbox.permissions import Cause
from tools.toolbox.rulings import Ruling

ReadGrant: TypeAlias = Any
"""The loaded data of one permission: a sequence that starts with its row."""


Ended: TypeAlias = Mapping[int, Objection]
"""The permissions that have ended permanently, by row id, each with the reason."""


@dataclass(frozen=True)
class AskingCard:
    """A card that needs an approval, whether it is stored or not, with its call, its run and the
    current version of the tool.

    Attributes:
        run: the run, with its organization loaded.
        causes: the causes of the call's current verdict.
    """

    card: Approval
    run: Run
    tool: Tool
    causes: tuple[Cause, ...]


@dataclass(frozen=True)
class PreapprovalObjection(Objection):
    """The reason why a preapproval does not allow its call to start.

    Attributes:
        ended: permissions found to have ended; the caller ends them.
    """

    ended: Ended = field(default_factory=dict)


class Preapproval(Protocol):
    """The result of comparing a card with the permissions of people.

    Attributes:
        grant: the row of the permission that approves the call, with its creator as `made_by`; None
            if a person must decide.
        withheld: the reason why a person must decide although a permission matches.
        ruling: the approval rules under which the creator could decide the call alone; None if no
            rule matches.
        ended: the compared permissions that were found to have ended; the caller ends them.
    """

    @property
    def grant(self) -> Any: ...

    @property
    def withheld(self) -> str: ...

    @property
    def ruling(self) -> Ruling | None: ...

    @property
    def ended(self) -> Ended: ...

    def as_json(self) -> dict[str, Any]:
        """Return the facts to store with the call, so that the approval can be checked again."""
        ...


class Preapprover(Protocol):
    """Approves cards in people's names when calls are recorded, and checks these approvals again
    when the calls start."""

    def load_in_force(self, run: Run, /) -> list[ReadGrant]:
        """Load the permissions that may approve cards of the run, oldest first."""
        ...

    def find_preapproval(self, asking: AskingCard, grants: Iterable[ReadGrant], /) -> Any:
        """Find the `Preapproval` of the card; None if none of these permissions concerns the
        tool."""
        ...

    def reserve_uses(self, run: Run, preapprovals: Sequence[tuple[Any, Approval]], /) -> list[Any]:
        """Reserve a use of the permission for each preapproval that approves its card. Return the
        preapprovals; a preapproval for which no use was left is withheld."""
        ...

    def find_warnings(self, asking: AskingCard, /) -> tuple[str, ...]:
        """Find the warnings on the card; with any warning, only a person can decide it."""
        ...

    def find_objection(self, asking: AskingCard, /) -> PreapprovalObjection | None:
        """Find the reason why the preapproval does not allow the start of the call; None if it
        does."""
        ...

    def end(self, ended: Ended, /) -> None:
        """End the permissions that were found to have ended."""
        ...


class Nobody:
    """The preapprover of an installation without one: it never approves a card, and never lets a
    preapproved call start."""

    def load_in_force(self, _run: Run, /) -> list[ReadGrant]:
        return []

    def find_preapproval(self, _asking: AskingCard, _grants: Iterable[ReadGrant], /) -> None:
        return None

    def reserve_uses(self, _run: Run, preapprovals: Sequence[tuple[Any, Approval]], /) -> list[Any]:
        return [preapproval for preapproval, _ in preapprovals]

    def find_warnings(self, _asking: AskingCard, /) -> tuple[str, ...]:
        return ()

    def find_objection(self, _asking: AskingCard, /) -> PreapprovalObjection:
        return PreapprovalObjection("nothing approves cards here")

    def end(self, _ended: Ended, /) -> None:
        """Do nothing, because there are no permissions."""


_preapprover: Preapprover = Nobody()


def register(preapprover: Preapprover) -> None:
    """Make this the preapprover of the process."""
    global _preapprover  # noqa: PLW0603 (set once, when the apps are ready)
    _preapprover = preapprover


def get_preapprover() -> Preapprover:
    """Return the current preapprover."""
    return _preapprover


class GrantsInForce:
    """The permissions that may approve cards of one run, loaded when the first card needs them."""

    def __init__(self) -> None:
        self._loaded: list[ReadGrant] | None = None

    @property
    def loaded_ids(self) -> tuple[int, ...]:
        """The ids of the loaded permissions, oldest first; empty if no card has needed them."""
        return tuple(row.pk for row, *_ in self._loaded or ())

    def load(self, run: Run) -> list[ReadGrant]:
        """Return the permissions, oldest first; costs one query the first time."""
        if self._loaded is None:
            self._loaded = get_preapprover().load_in_force(run)
        return self._loaded
