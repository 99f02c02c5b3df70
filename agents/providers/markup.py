"""Parse a text that consists only of XML-like elements, even if some of them are not closed."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from agents.providers.relaxed_json import UnreadableError

MAX_TAGS = 2_000
_TAG = re.compile(
    r"<(/?)([\w:.-]{1,80})((?:\s{1,20}[\w:-]{1,40}\s{0,20}=\s{0,20}(?:\"[^\"]*\"|'[^']*'))*)\s{0,20}(/?)>"
)
_ATTRIBUTE = re.compile(r"([\w:-]{1,40})\s{0,20}=\s{0,20}(?:\"([^\"]*)\"|'([^']*)')")
_PARAM = re.compile(r"(?:\w+:)?(?:param|parameter|arg|argument|input|property|field)s?", re.I)


class Markup(dict[str, Any]):
    """An element that contains other elements or has attributes. If a text is expected, the element
    may be a text that contains markup."""


@dataclass
class _Element:
    tag: str
    attributes: dict[str, Any] = field(default_factory=dict)
    inner: dict[str, Any] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

    def add(self, other: "_Element") -> None:
        key, value = other.tag, other.read()
        name = other.attributes.get("name", other.attributes.get("key"))
        if _PARAM.fullmatch(other.tag) and name is not None:
            key, value = name, other.read_content()
        elif key in self.inner:
            earlier = self.inner[key]
            value = [*earlier, value] if isinstance(earlier, list) else [earlier, value]
        self.inner[key] = value

    def read(self) -> Any:
        content = self.read_content()
        if not self.attributes:
            return content
        if isinstance(content, Markup) or content == "":
            return Markup({**self.attributes, **(content or {})})
        return Markup({**self.attributes, "arguments": content})

    def read_content(self) -> Any:
        if self.inner:
            return Markup(self.inner)
        text = "".join(self.texts).strip()
        if text[:1] in ("{", "["):
            try:
                return json.loads(text, strict=False)
            except (ValueError, RecursionError):
                return text
        return text


def read_markup(text: str) -> Any:
    """Return a dict of the text's outermost elements by tag.

    Raises:
        UnreadableError: there is text outside the elements.
    """
    if text[:1] != "<":
        raise UnreadableError("no element")
    open_, position = [_Element("")], 0
    for count, tag in enumerate(_TAG.finditer(text)):
        if count > MAX_TAGS:
            raise UnreadableError("too many tags")
        _add_text(open_, text[position : tag.start()])
        position = tag.end()
        if tag[1]:
            _close(open_, tag[2])
            continue
        pairs = {name: first or second for name, first, second in _ATTRIBUTE.findall(tag[3])}
        open_.append(_Element(tag[2], pairs))
        if tag[4]:
            _close(open_, tag[2])
    _add_text(open_, text[position:])
    while len(open_) > 1:
        _close(open_, open_[-1].tag)
    return dict(open_[0].inner)


def _add_text(open_: list[_Element], text: str) -> None:
    if len(open_) == 1 and text.strip():
        raise UnreadableError("words outside elements")
    open_[-1].texts.append(text)


def _close(open_: list[_Element], tag: str) -> None:
    """Close the innermost element with this tag and all elements inside it. Ignore a tag that is
    not open."""
    if not any(element.tag == tag for element in open_[-20:]):
        return
    while len(open_) > 1:
        element = open_.pop()
        open_[-1].add(element)
        if element.tag == tag:
            return
