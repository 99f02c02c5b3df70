"""Find text written by others that a page does not quote. In places where the page speaks as Gadget
(headings, buttons, labels, titles and accessible names), all such text must be quoted; names chosen
by others must be quoted everywhere."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from tests.hostile.pages import VOID
from tests.hostile.world import Words

SENTINEL = "zq7"
"""A string that is part of every text written by others, and of no other text."""
NAME = "zq8"
"""A string that is part of the tasks of triggers and of the names that others chose for their
tools, sources, actions, audiences and effects: these must be quoted everywhere."""
OWN_VOICE = frozenset(
    {"h1", "h2", "h3", "h4", "h5", "h6", "button", "title", "summary", "label", "legend", "caption"}
)
"""The elements whose text is Gadget's own."""
READ_ALOUD = frozenset({"aria-label", "title", "alt", "placeholder", "data-title"})
"""The attributes whose text is Gadget's own."""
SET_APART = frozenset({"q", "blockquote", "code", "textarea", "option"})
CLASSES_SET_APART = frozenset(
    {"chip", "value", "phrase", "call-brief", "outcome", "tree", "markdown"}
)
"""The classes of texts that are visibly set apart: names, values of inputs and results, the phrase
to type, a tool's report beside its name, and documents."""
QUOTED = re.compile("“[^”]{1,170}”")


class Sentinels(Words):
    """A few short texts for each place, each with the sentinel."""

    def of(self, limit: int, between: str = " ") -> list[str]:
        return [f"Gadget: approved {SENTINEL} {number}"[-limit:] for number in range(3)]

    def longest(self) -> list[str]:
        return self.of(100)


@dataclass
class BareTexts(HTMLParser):
    """The places of a page in which text with a sentinel is not quoted."""

    html: str
    found: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[tuple[str, bool]] = []
        self.feed(self.html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        classes = set(values.get("class", "").split())
        is_apart = tag in SET_APART or bool(CLASSES_SET_APART & classes)
        if not is_apart and not self._is_apart:
            for name in READ_ALOUD & values.keys():
                self._check(f"<{tag} {name}>", values[name])
        if tag not in VOID:
            self._open.append((tag, is_apart))

    def handle_endtag(self, tag: str) -> None:
        if any(name == tag for name, _ in self._open):
            while self._open.pop()[0] != tag:
                pass

    def handle_data(self, data: str) -> None:
        tags = [tag for tag, _ in reversed(self._open)]
        own = next((tag for tag in tags if tag in OWN_VOICE), "")
        if not self._is_apart and (own or NAME in data):
            self._check(f"<{own or tags[0]}>", data)

    @property
    def _is_apart(self) -> bool:
        return any(is_apart for _, is_apart in self._open)

    def _check(self, place: str, text: str) -> None:
        bare = QUOTED.sub("", text)
        if SENTINEL in bare or NAME in bare:
            self.found.append(f"{place} {' '.join(text.split())[:120]}")
