"""Signs of a card in its HTML: the elements that mark a deception or keep Approve disabled before
anything is opened."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from tests.deceptions.pairing import Pair

MARKS = frozenset({"warning", "new-here", "similar", "stale", "same-target", "done-already"})
"""Classes of the marks above a card's facts. An honest card has none."""
FACTS = frozenset({"outliers", "emptied"})
"""Classes of other elements that point out odd values. An honest card may have some."""
FOLDED = frozenset({"clamp", "rest"})
"""Classes of the parts that must be opened before Approve is enabled."""
QUOTES = frozenset({"chip", "employee-words", "field-name", "quoted", "value"})
"""Classes of the elements that show other people's words as a quotation, with a look that text
cannot have."""
OPEN_TO_ALL = frozenset({"level-read", "level-draft"})
SPOKEN = ("aria-label", "title", "alt")
QUOTED = re.compile("“[^“”]*”")
VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "path", "wbr"})
START = 8
"""Characters of planted words that are searched for: enough to tell them from Gadget's own."""


@dataclass
class Signs(HTMLParser):
    """A card as it is before anything is opened.

    Attributes:
        marks: the classes of the visible marks and facts.
        is_off: True if folded parts must be opened before Approve is enabled.
        bare: the visible text outside of quotations, without white space.
    """

    html: str
    marks: set[str] = field(default_factory=set)
    is_off: bool = False
    bare: str = ""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[tuple[str, frozenset[str]]] = []
        self._pieces: list[str] = []
        self.feed(self.html)
        self.close()
        self.bare = squeeze(" ".join(self._pieces))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        classes = frozenset(values.get("class", "").split())
        if not self._is_folded():
            if classes & (MARKS | FACTS):
                self.marks.add(" ".join(sorted(classes)))
            if "data-confirm" in values:
                self.marks.add("confirm")
            self._pieces += [values[name] for name in SPOKEN if name in values]
        if tag == "details" and classes & FOLDED:
            self.is_off = not any(outer & OPEN_TO_ALL for _, outer in self._open)
        if tag not in VOID:
            self._open.append((tag, classes))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        is_quoted = any(classes & QUOTES for _, classes in self._open)
        if not self._is_folded():
            self._pieces.append("\0" if is_quoted else data)

    def _is_folded(self) -> bool:
        tags = [tag for tag, _ in self._open]
        return "details" in tags and "summary" not in tags

    def count_bare(self, words: str) -> int:
        """Count how often the beginning of these words appears outside of quotations."""
        start = squeeze(words)[:START]
        return (self.bare if set(words) & {"“", "”"} else QUOTED.sub("", self.bare)).count(start)


def squeeze(text: str) -> str:
    return "".join(text.split())


def find_protection(pair: Pair, plant: Signs, twin: Signs) -> set[str]:
    """Return the signs that protect the planted card, but not its twin, before anything is opened:
    classes of marks, "off" if Approve is disabled, and "quoted" if the words appear only in
    quotations."""
    found = plant.marks - twin.marks
    if plant.is_off:
        found.add("off")
    if pair.words and plant.count_bare(pair.words) <= twin.count_bare(pair.words):
        found.add("quoted")
    return found
