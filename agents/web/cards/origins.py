"""The origins of a card's values: a line for each value from outside, and a table of all values."""

from __future__ import annotations

from dataclasses import dataclass, field

from agents.runs.models import ToolCall
from tools.toolbox.provenance import Provenance, SeenIn, Sighting

MAX_LINES = 6
"""The maximum number of values from outside that a card shows unfolded; its table has all
values."""
LABELS = {
    SeenIn.PERSON: "typed by a person",
    SeenIn.OUTSIDE: "from outside",
    SeenIn.OWN: "your own data",
    SeenIn.NOWHERE: "not seen before",
}


@dataclass
class OutsideLine:
    """One value from outside, with all params that have it."""

    sighting: Sighting
    paths: list[str] = field(default_factory=list)
    stands_out: bool = False

    @property
    def more(self) -> int:
        """The number of params besides the first."""
        return len(self.paths) - 1


@dataclass(frozen=True)
class ValueOrigins:
    """The origins of a call's values, as a card shows them.

    Attributes:
        lines: the values from outside that the card shows unfolded; values that name a recipient, a
            destination or an amount come first.
        hidden_lines: the number of further values from outside, which only the table shows.
        rows: every value with the words for its origin.
        unsearched: the number of values that were not searched for or are not listed.
        is_partial: True if older results were too large to be searched.
    """

    lines: tuple[OutsideLine, ...] = ()
    hidden_lines: int = 0
    rows: tuple[tuple[Sighting, str], ...] = ()
    unsearched: int = 0
    is_partial: bool = False


def describe_origins(call: ToolCall) -> ValueOrigins:
    """Describe where the call's values were seen before, as known when its card was created."""
    known = Provenance.from_json(call.provenance)
    lines: dict[tuple[str, int | None], OutsideLine] = {}
    for sighting in known.list_outside():
        line = lines.setdefault((sighting.value, sighting.call_id), OutsideLine(sighting))
        line.paths.append(sighting.path)
        line.stands_out = line.stands_out or sighting.stands_out
    rows = tuple((each, LABELS[each.origin]) for each in known.sightings)
    shown = tuple(lines.values())[:MAX_LINES]
    return ValueOrigins(shown, len(lines) - len(shown), rows, known.unsearched, known.is_partial)
