"""Parse a page like a browser, and report the effects of hostile text on it."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from tests.hostile import HOSTILE, hidden_in, squeezed
from tools.contract.odd_letters import KINDS

Shape = tuple[str, frozenset[str]]
"""An element with the names of its attributes."""

# Elements that Gadget itself adds to text: tokens, flags, and rendered Markdown.
OF_TEXT: frozenset[Shape] = frozenset(
    {("span", frozenset({"class", "title"})), ("span", frozenset({"class"}))}
)
OF_SENTENCES: frozenset[Shape] = frozenset(
    {
        ("strong", frozenset({"class"})),
        ("strong", frozenset({"class", "title"})),
        ("bdi", frozenset()),
    }
    | {
        ("ul", frozenset({"class", "aria-label"})),
        ("li", frozenset({"class"})),
        ("del", frozenset()),
    }
    | {("ins", frozenset())}
)
# Tokens with a count, and tokens of spaces, which `squeezed` omits.
COUNTED = re.compile("⟦(U\\+[0-9A-F]+) \N{MULTIPLICATION SIGN}([0-9,]+)⟧")
SPACES = re.compile(r"⟦(?:U\+(?:00A0|1680|200[0-9A]|202F|205F)|[0-9,]+ (?:blank lines|spaces?))⟧")
MARKDOWN_TAGS = frozenset(
    [
        "blockquote",
        "br",
        "code",
        "del",
        "em",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "li",
        "ol",
        "p",
        "pre",
        "s",
        "strong",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "ul",
    ]
)
OF_MARKDOWN: frozenset[Shape] = frozenset(
    {(tag, frozenset[str]()) for tag in MARKDOWN_TAGS}
    | {("a", frozenset({"href", "rel"})), ("a", frozenset({"rel"}))}
    | {("div", frozenset({"class", "tabindex", "role", "aria-label"}))}
)
OF_RENDERED = OF_MARKDOWN | OF_TEXT
MARKDOWN_LINK = re.compile(r"https?://[^\s\"<>]*", re.IGNORECASE)
# Values that a form sends back unchanged, or that only the page's own scripts use.
RAW = frozenset({"value", "data-example", "data-confirm", "data-only-user", "data-user"})
ADDRESSES = frozenset(
    {
        "href",
        "src",
        "srcset",
        "action",
        "formaction",
        "poster",
        "data",
        "ping",
        "background",
        "xlink:href",
    }
)
OWN_ADDRESS = re.compile(r"(?:/(?!/)|\?|#)[!-~]*|$")
VOID = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "source",
        "track",
        "wbr",
    ]
)
FLAGS = tuple(f"⚠ {kind}" for kind in KINDS)


@dataclass
class Reading(HTMLParser):
    """A parsed page, with the faults found on it.

    Attributes:
        shapes: its elements, without those of rendered Markdown.
        faults: the faults that no page may have.
        text: all of its text without blanks and flags, for searching.
        following: the address of the next page.
    """

    html: str
    shapes: set[Shape] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    text: str = ""
    following: str = ""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[tuple[str, bool, bool]] = []
        self._open_markdown = 0
        self._pieces: list[str] = []
        self.feed(self.html)
        self.close()
        shown = "".join(self._pieces)
        for flag in FLAGS:
            shown = shown.replace(flag, "")
        self.text = "".join(_expand_tokens(shown).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        shape = (tag, frozenset(values))
        if not (self._open_markdown and shape in OF_RENDERED):
            self.shapes.add(shape)
        self._check_values(tag, values)
        if values.get("rel") == "next":
            self.following = values.get("href", "")
        if tag not in VOID:
            is_markdown = "markdown" in values.get("class", "").split()
            is_decoded = values.get("class") == "decoded" or bool(self._open and self._open[-1][2])
            self._open.append((tag, is_markdown, is_decoded))
            self._open_markdown += is_markdown

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if not any(name == tag for name, *_ in reversed(self._open)):
            return
        name = ""
        while name != tag:
            name, is_markdown, _ = self._open.pop()
            self._open_markdown -= is_markdown

    def handle_data(self, data: str) -> None:
        if not (self._open and self._open[-1][2]):
            self._pieces.append(data)
        if not (self._open and self._open[-1][0] in ("textarea", "script", "style")) and (
            hidden := hidden_in(data)
        ):
            self.faults.append(f"{sorted(hidden)[:5]} in text {data[:60]!a}")

    def handle_comment(self, data: str) -> None:
        self.faults.append(f"comment {data[:60]!a}")

    def handle_decl(self, decl: str) -> None:
        if decl.lower() != "doctype html":
            self.faults.append(f"declaration {decl[:60]!a}")

    def handle_pi(self, data: str) -> None:
        self.faults.append(f"instruction {data[:60]!a}")

    def unknown_decl(self, data: str) -> None:
        self.faults.append(f"declaration {data[:60]!a}")

    def _check_values(self, tag: str, values: dict[str, str]) -> None:
        for name, value in values.items():
            if name.startswith("on"):
                self.faults.append(f"<{tag} {name}={value[:60]!a}>")
            if name in ADDRESSES and not self._is_tame(tag, name, value):
                self.faults.append(f"address <{tag} {name}={value[:60]!a}>")
            if name not in RAW and (hidden := hidden_in(value)):
                self.faults.append(f"{sorted(hidden)[:5]} in <{tag} {name}={value[:60]!a}>")

    def _is_tame(self, tag: str, name: str, value: str) -> bool:
        in_markdown = self._open_markdown and tag == "a" and name == "href"
        return bool((MARKDOWN_LINK if in_markdown else OWN_ADDRESS).fullmatch(value))


def _expand_tokens(text: str) -> str:
    """Write each counted token out, and omit tokens of spaces."""
    return SPACES.sub(
        "", COUNTED.sub(lambda found: f"⟦{found[1]}⟧" * int(found[2].replace(",", "")), text)
    )


def strange(hostile: Reading, known: set[Shape]) -> list[str]:
    """List the elements that the hostile page has and the harmless page lacks."""
    return sorted(
        f"<{tag} {' '.join(sorted(names))}>"
        for tag, names in hostile.shapes - known - OF_TEXT - OF_SENTENCES
    )


def tells(told: str, text: str) -> bool:
    """Return True if the page shows the whole text, on one line or on several."""
    ways = itertools.product((True, False), (True, False))
    return any(squeezed(text, one_line=line, counts_marks=marks) in told for line, marks in ways)


def untold(told: str, limit: int) -> list[str]:
    """List the hostile strings, each cut at this length, that the page does not show."""
    return [
        text for text in dict.fromkeys(text[:limit] for text in HOSTILE) if not tells(told, text)
    ]
