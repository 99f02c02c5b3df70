"""The parts of a host's name: the ending that a registry hands out, the label that somebody
registered under it, and the labels before that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tools.contract.contacts import decode_host
from tools.contract.host_endings import LONGER_ENDINGS

MOST_LABELS = 12
MOST_WORDS = 8
"""The maximum number of words between a label's hyphens whose combinations are listed."""
SHORTEST_PIECE = 4
ALL = "*"


class HostName(NamedTuple):
    """A host's name, divided into its parts: `www`, `acme` and `co.uk`.

    Attributes:
        before: the labels before the registered label; the domain's owner chooses them.
        label: the registered label.
    """

    before: tuple[str, ...]
    label: str
    ending: str

    @property
    def domain(self) -> str:
        """The registered domain: hosts that share it have one owner."""
        return f"{self.label}.{self.ending}"


def split_host(host: str) -> HostName | None:
    """Divide a host by the public suffix list; None for a single label and for an IP address."""
    labels = tuple(decode_host(host.rstrip(".")).casefold().split("."))[-MOST_LABELS:]
    if len(labels) == 1 or labels[-1].isdecimal() or not all(labels):
        return None
    longer = LONGER_ENDINGS.get(labels[-1], frozenset())
    is_longer = len(labels) > 2 and not longer.isdisjoint((labels[-2], ALL))
    at = len(labels) - (3 if is_longer else 2)
    return HostName(labels[:at], labels[at], ".".join(labels[at + 1 :]))


def list_runs(parts: Sequence[str], fewest: int = 1) -> Iterator[tuple[str, ...]]:
    """List the sequences of neighboring parts, the longest first; each has at least `fewest`
    parts."""
    for size in range(len(parts), fewest - 1, -1):
        for start in range(len(parts) - size + 1):
            yield tuple(parts[start : start + size])


def list_words(labels: Iterable[str]) -> Iterator[str]:
    """List the words between the labels' hyphens, alone and joined with their neighbors."""
    for label in labels:
        yield from ("".join(run) for run in list_runs(label.split("-")[:MOST_WORDS]))


def list_edges(label: str) -> Iterator[str]:
    """List the beginnings and endings of a label, the longest first, without the label itself."""
    for size in range(len(label) - 1, SHORTEST_PIECE - 1, -1):
        yield from (label[:size], label[-size:])
