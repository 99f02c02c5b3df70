"""The kinds and labels of marks, and the marks that an approval must name as seen or that prevent
a bulk approval."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass

HIDDEN, SPACES, ALPHABETS, LETTERS, ADDRESS, LIKENESS, IMITATION, NAME = (
    "hidden", "spaces", "alphabets", "letters", "address", "likeness", "imitation", "name"
)  # fmt: skip
UNLIMITED, EMPTIED, CREDENTIAL, TWICE = "unlimited", "emptied", "credential", "twice"
OUTSIDE, NEW, REACH, PREVIEW, ELSEWHERE, RESTORED, DONE, STALE, FOLDED, DESTRUCTIVE = (
    "outside", "new", "reach", "preview", "elsewhere", "restored", "done", "stale", "folded",
    "destructive",
)  # fmt: skip
CONFLICT, ODD = "conflict", "odd"
MARK_LABELS = {
    HIDDEN: "Hidden characters",
    SPACES: "Unusual spaces",
    ALPHABETS: "Mixed alphabets",
    LETTERS: "Misleading letters",
    ADDRESS: "Misleading address",
    LIKENESS: "Almost the same",
    IMITATION: "Imitates Gadget",
    NAME: "Similar names",
    UNLIMITED: "No limit",
    EMPTIED: "Empties values",
    CREDENTIAL: "Credential",
    TWICE: "Two values for one name",
    OUTSIDE: "From outside",
    NEW: "New here",
    REACH: "Affects many",
    PREVIEW: "Preview failed",
    ELSEWHERE: "Not run by Gadget",
    RESTORED: "May be done already",
    DONE: "Already done",
    STALE: "Cannot run as shown",
    FOLDED: "Must be opened",
    DESTRUCTIVE: "Destructive",
    CONFLICT: "Same target as other cards",
    ODD: "Unlike the others",
}
"""The labels of all marks, by kind, in the order in which a card has them."""
_ORDER = {kind: place for place, kind in enumerate(MARK_LABELS)}
SIGNS = frozenset({HIDDEN, SPACES, ALPHABETS, LETTERS, ADDRESS, LIKENESS, IMITATION, NAME})
"""Signs of deception."""
MEANINGS = frozenset({UNLIMITED, EMPTIED, CREDENTIAL, TWICE})
"""Marks of values that mean more than they seem to."""
ALLOWED_IN_BULK = frozenset({CONFLICT, ODD})
"""Marks that never prevent a bulk approval of a card. Any other mark does, unless it is in
`MUST_BE_SEEN` and the sender has seen it."""
MUST_BE_SEEN = SIGNS | MEANINGS | {OUTSIDE, NEW, PREVIEW, RESTORED}
"""Marks that an approval over REST must name as seen.

The other marks do not have to be named: a confirmation is typed, the REST API does not fold values,
and separate fields of a card show that it is stale, already done, or not run by Gadget.
"""
MAX_DETAILS = 3


@dataclass(frozen=True)
class Mark:
    """One thing about a card that a person must see before approving it.

    Attributes:
        kind: one of the keys of `MARK_LABELS`.
        label: a few words, without a value of the card.
        detail: the values and their places in words, with text from others in quotation marks;
            empty if the label says everything.
    """

    kind: str
    label: str
    detail: str = ""

    def as_json(self) -> dict[str, str]:
        """Return the fields, as other programs get them."""
        return asdict(self)


def build_mark(kind: str, *details: str) -> Mark:
    """Build the mark of a kind. It names the first three different details, and counts the
    others."""
    different = list(dict.fromkeys(details))
    more = len(different) - MAX_DETAILS
    detail = "; ".join(different[:MAX_DETAILS]) + (f"; and {more} more" if more > 0 else "")
    return Mark(kind, MARK_LABELS[kind], detail)


def build_marks(found: Mapping[str, Collection[str]]) -> tuple[Mark, ...]:
    """Build a mark for each kind that has details, in the order of `MARK_LABELS`."""
    kinds = sorted((kind for kind in found if found[kind]), key=_ORDER.__getitem__)
    return tuple(build_mark(kind, *found[kind]) for kind in kinds)


def add_details(marks: Iterable[Mark], more: Mapping[str, Collection[str]]) -> tuple[Mark, ...]:
    """Add details, by kind, to marks, each of which has a detail already. A kind without a mark
    gets one."""
    found = {mark.kind: [mark.detail] for mark in marks}
    for kind, details in more.items():
        found.setdefault(kind, []).extend(details)
    return build_marks(found)


def name_marks(marks: Iterable[Mark]) -> str:
    """Name the marks by their labels, without a value of the card: `Mixed alphabets, New here`."""
    return ", ".join(mark.label for mark in marks)


def end_with_marks(marks: Collection[Mark]) -> str:
    """Name the marks, to be appended to a line about the card; empty if there are none."""
    return f". Marked: {name_marks(marks)}" if marks else ""


def select_individual(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """Select the marks because of which a card is approved individually, never in bulk."""
    return tuple(mark for mark in marks if mark.kind not in ALLOWED_IN_BULK)
