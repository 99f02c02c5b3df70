"""Blocks of values on a card: those that are shown unfolded, and those that are folded behind a
summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.approvals.warnings.card_values import NamedValue
from agents.approvals.warnings.folding import MAX_NAMED, Split
from agents.web.cards.differences import Change


@dataclass(frozen=True)
class ValueBlock:
    """The values of one target, the values that all targets share, or those of a request.

    Attributes:
        shown: the values that are shown unfolded.
        folded: the values that a person must unfold to see.
        named: the folded values that the summary names, because they are odd or must be read.
        more_named: the number of further such values, which the summary only counts.
        alike: the number of folded values that are alike; 0 if they are not.
    """

    shown: list[Change]
    folded: list[Change]
    named: list[Change]
    more_named: int = 0
    alike: int = 0

    @property
    def changes(self) -> list[Change]:
        """All values of the block."""
        return [*self.shown, *self.folded]


def build_block(values: Sequence[NamedValue], split: Split | None = None) -> ValueBlock:
    """Build the block of these values; without a split, all of them are shown unfolded."""
    if split is None:
        return ValueBlock([Change(*value) for value in values], [], [])
    shown, folded, named = (
        [Change(*values[index]) for index in indices]
        for indices in (split.shown, split.folded, split.named)
    )
    return ValueBlock(shown, folded, named[:MAX_NAMED], max(0, len(named) - MAX_NAMED), split.alike)
