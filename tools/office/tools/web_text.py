"""Extraction of readable text from HTML, in linear time.

Pages are untrusted, and the available parsers take quadratic time for some pages or fail if
elements are deeply nested. This scanner does not build a tree, so nesting does not matter, and it
searches each part of the text once.
"""

import html
import re
import unicodedata
from dataclasses import dataclass, field

BLOCK_ELEMENTS = frozenset(
    {
        *(
            "address",
            "article",
            "aside",
            "blockquote",
            "body",
            "dd",
            "details",
            "dialog",
            "div",
            "dl",
            "dt",
            "fieldset",
        ),
        *(
            "figcaption",
            "figure",
            "footer",
            "form",
            "h1",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
            "header",
            "hr",
            "li",
            "main",
        ),
        *(
            "ol",
            "option",
            "p",
            "pre",
            "section",
            "summary",
            "table",
            "tbody",
            "tfoot",
            "thead",
            "tr",
            "ul",
            "br",
        ),
    }
)
SKIPPED_ELEMENTS = frozenset(
    {
        "script",
        "style",
        "template",
        "svg",
        "math",
        "iframe",
        "object",
        "canvas",
        "noscript",
        "select",
        "nav",
    }
)
"""Elements whose content is not part of the readable text."""
RAW_ELEMENTS = frozenset({"script", "style", "iframe", "noscript", "textarea", "title", "xmp"})
"""Elements whose content cannot contain tags."""
VOID_ELEMENTS = frozenset(
    {
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
    }
)
LONGEST_TAG = 8_000
LONGEST_LINE = 300
"""The maximum number of characters in a title or in a link's text."""
KEPT_FORMATS = frozenset("\u200c\u200d")
"""Invisible joiners that some writing systems need."""

_MARKUP = re.compile(r"<(?=[a-zA-Z!?]|/[a-zA-Z])")
_NAME = re.compile(r"</?([a-zA-Z][a-zA-Z0-9:-]*)")
_TAG_END = re.compile(r"""[^>"']*+(?:"[^"]*+"[^>"']*+|'[^']*+'[^>"']*+)*+>""")
_ATTRIBUTE = re.compile(r"""([a-zA-Z-]++)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'>]++))?+""")
_HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)


@dataclass
class PageText:
    """The readable content of a page.

    Attributes:
        links: (text, address as written in the page), each address once.
    """

    title: str = ""
    text: str = ""
    links: list[tuple[str, str]] = field(default_factory=list)


def remove_hidden_characters(text: str) -> str:
    """Remove invisible characters, such as control characters and formats that can hide words."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char for char in text if char in "\n\t" or char in KEPT_FORMATS or _is_visible(char)
    )


def collapse_to_line(text: str, most: int = LONGEST_LINE) -> str:
    """Collapse the text to one line of limited length, so that it cannot imitate other lines."""
    line = " ".join(remove_hidden_characters(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _is_visible(char: str) -> bool:
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn")


def extract_page_text(page: str) -> PageText:
    """Extract the readable text of HTML: headings with `#`, list items with `-`, cells with `|`."""
    return _PageReader(page).read()


class _PageReader:
    def __init__(self, page: str) -> None:
        self._page = page
        self._at = 0
        self._parts: list[str] = []
        self._title = ""
        self._links: dict[str, list[str]] = {}
        self._link: list[str] | None = None
        self._skipped = ""
        self._depth = 0

    def read(self) -> PageText:
        page = self._page
        while (found := _MARKUP.search(page, self._at)) is not None:
            self._write(page[self._at : found.start()])
            self._at = found.start()
            self._read_markup()
        self._write(page[self._at :])
        links = [
            (collapse_to_line("".join(words)), address) for address, words in self._links.items()
        ]
        return PageText(collapse_to_line(self._title), _tidy_lines("".join(self._parts)), links)

    def _read_markup(self) -> None:
        page, at = self._page, self._at
        if page.startswith("<!--", at):
            self._at = self._find_after("-->", at + 4)
        elif page.startswith(("<!", "<?"), at):
            self._at = self._find_after(">", at)
        elif (name := _NAME.match(page, at)) is not None:
            ends = _TAG_END.match(page, name.end(), name.end() + LONGEST_TAG)
            end = ends.end() if ends else self._find_after(">", at)
            self._at = end
            word = name[1].lower()
            if page[at + 1] == "/":
                self._close_element(word)
            else:
                self._open_element(word, page[name.end() : min(end, name.end() + LONGEST_TAG)])

    def _find_after(self, end: str, at: int) -> int:
        found = self._page.find(end, at)
        return len(self._page) if found < 0 else found + len(end)

    def _open_element(self, name: str, attributes: str) -> None:
        if name in RAW_ELEMENTS:
            self._read_raw_element(name)
        elif self._skipped:
            self._depth += name == self._skipped
        elif name not in VOID_ELEMENTS and (name in SKIPPED_ELEMENTS or _is_hidden(attributes)):
            self._skipped, self._depth = name, 1
        else:
            self._begin_element(name, attributes)

    def _close_element(self, name: str) -> None:
        if self._skipped:
            self._depth -= name == self._skipped
            self._skipped = self._skipped if self._depth else ""
        elif name == "a":
            self._link = None
        elif name in BLOCK_ELEMENTS:
            self._parts.append("\n")

    def _read_raw_element(self, name: str) -> None:
        closing = re.compile(rf"</{name}[\s/>]", re.IGNORECASE).search(self._page, self._at)
        end = closing.start() if closing else len(self._page)
        content = self._page[self._at : end]
        self._at = self._find_after(">", end)
        if self._skipped:
            return
        if name == "title":
            self._title = self._title or _unescape(content[: LONGEST_LINE * 10])
        elif name not in SKIPPED_ELEMENTS:
            self._write(content)

    def _begin_element(self, name: str, attributes: str) -> None:
        if name in BLOCK_ELEMENTS:
            self._parts.append("\n")
        if len(name) == 2 and name[0] == "h" and name[1] in "123456":
            self._parts.append("#" * int(name[1]) + " ")
        elif name == "li":
            self._parts.append("- ")
        elif name in ("td", "th"):
            self._parts.append(" | ")
        elif name == "img" and (words := _find_attribute(attributes, "alt")):
            self._write(words)
        elif name == "a":
            address = _find_attribute(attributes, "href").strip()
            self._link = (
                self._links.setdefault(address, [])
                if address and address not in self._links
                else None
            )

    def _write(self, raw: str) -> None:
        if self._skipped or not raw:
            return
        text = _unescape(raw)
        # Line breaks in the source have no meaning; only block elements break lines.
        self._parts.append(re.sub(r"\s+", " ", text))
        if self._link is not None and len(self._link) < LONGEST_LINE:
            self._link.append(text[:LONGEST_LINE])


def _unescape(text: str) -> str:
    try:
        return html.unescape(text)
    except ValueError:  # a numeric reference with more digits than Python reads
        return text


def _is_hidden(attributes: str) -> bool:
    """Return True if a person would not see the element. Its text is left out, because hidden text
    is often aimed at machines."""
    lowered = attributes.lower()
    if "hidden" not in lowered and "display" not in lowered:
        return False
    given = {
        found[1].lower(): (found[2] or "").strip("\"'") for found in _ATTRIBUTE.finditer(attributes)
    }
    return (
        "hidden" in given
        or given.get("aria-hidden") == "true"
        or bool(_HIDING.search(given.get("style", "")))
    )


def _find_attribute(attributes: str, name: str) -> str:
    for found in _ATTRIBUTE.finditer(attributes):
        if found[1].lower() == name:
            return _unescape((found[2] or "").strip("\"'"))
    return ""


def _tidy_lines(text: str) -> str:
    lines = (
        " ".join(line.split()).strip("| ") for line in remove_hidden_characters(text).split("\n")
    )
    readable = [line for line in lines if line and line != "-" and line.strip("#")]
    return "\n".join(readable)
