"""Parse a text that consists only of labeled lines, such as YAML, or a line `Tool: x` above a line
`Input: {…}`."""

import json
import re
from dataclasses import dataclass
from typing import Any

from agents.providers.relaxed_json import Pair, UnreadableError, join_items, read_relaxed

MAX_LINES = 2_000
MAX_DEPTH = 15
MAX_VALUES = 40
"""The maximum number of JSON values in a text. The number is limited because the rest of the text
is copied for each value."""
_FENCE = re.compile(r"\s*(?:```|~~~)[^`]*")
_BULLET = re.compile(r"(?:[-*+•]|\d{1,2}[.)])[ \t]{1,8}")
_LABEL = re.compile(
    r"[^\w\n{\[]{0,8}(?P<key>[\w/@][\w./@-]{0,80}(?: [\w./-]{1,40}){0,3})[*_`\"']{0,4}"
    r" ?[:=](?!=)[*_`]{0,4}(?=\s|$|[\"'{\[`])"
)
_SECTION = re.compile(r"\[([\w.-]{1,80})\]")
_NAME = re.compile(r"[^\w\n{\[]{0,8}([\w./@-]{1,120}?)[*_`:]{0,6}")
_DECORATION = " \t\r*_`"
_THOUGHT = re.compile(r"(?:thoughts?|reasoning|observation|final answer|explanation|plan)", re.I)
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True)
class _Line:
    indent: int
    body: str


def read_lines(text: str) -> Any:
    """Return a dict of the labeled lines, or a list of dicts if labels repeat.

    Raises:
        UnreadableError: the text has other lines, such as sentences.
    """
    lines = text.expandtabs(2).split("\n", MAX_LINES)
    if len(lines) > MAX_LINES:
        raise UnreadableError("too many lines")
    kept = [_Line(len(line) - len(line.lstrip()), line.strip()) for line in lines if line.strip()]
    reader = _LineReader([line for line in kept if not _FENCE.fullmatch(line.body)])
    return reader.read_block(0, 0)


class _LineReader:
    def __init__(self, lines: list[_Line]) -> None:
        self._lines = lines
        self._at = 0
        self._values = 0

    def _is_within(self, indent: int) -> bool:
        return self._at < len(self._lines) and self._lines[self._at].indent >= indent

    def read_block(self, indent: int, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise UnreadableError("too deep")
        items: list[Any] = []
        while self._is_within(indent):
            line = self._lines[self._at]
            if line.body[0] in "{[" and not _SECTION.fullmatch(line.body):
                items.append(self._read_json(0))
            elif bullet := _BULLET.match(line.body):
                items.append(self._read_bullet(line, bullet.end(), depth))
            elif (item := self._read_labeled(line, depth)) is not None:
                items.append(item)
            elif items and isinstance(items[-1], Pair) and _THOUGHT.fullmatch(items[-1][0]):
                self._at += 1
            else:
                raise UnreadableError("a sentence")
        return _join(items)

    def _read_bullet(self, line: _Line, width: int, depth: int) -> Any:
        inner = _Line(line.indent + width, line.body[width:].strip())
        if not inner.body or (inner.body[0] not in "{[" and not _LABEL.match(inner.body[:200])):
            self._at += 1
            return inner.body
        self._lines[self._at] = inner
        return self.read_block(inner.indent, depth + 1)

    def _read_labeled(self, line: _Line, depth: int) -> Pair | None:
        """Read a label and its value. A line with only a name is the label of the lines after it.
        Return None for any other line."""
        if (label := _LABEL.match(line.body[:200])) is not None:
            return Pair((label["key"], self._read_value(line, label.end(), depth)))
        name = _SECTION.fullmatch(line.body[:200]) or _NAME.fullmatch(line.body[:200])
        if name is None:
            return None
        self._at += 1
        if not self._is_within(line.indent):
            return None
        is_json = self._lines[self._at].body[0] == "{"
        return Pair(
            (name[1], self._read_json(0) if is_json else self.read_block(line.indent, depth + 1))
        )

    def _read_value(self, line: _Line, position: int, depth: int) -> Any:
        value = line.body[position:].strip(_DECORATION)
        if value[:1] in ("{", "["):
            return self._read_json(line.body.index(value[0], position))
        self._at += 1
        if value.rstrip("+-") in ("|", ">"):
            return "\n".join(self._take_deeper(line.indent))
        if value:
            return " ".join([_unquote(value), *self._take_deeper(line.indent)])
        if self._at < len(self._lines):
            following = self._lines[self._at]
            if following.body[0] in "{[" and following.indent >= line.indent:
                return self._read_json(0)
            if following.indent > line.indent or (
                following.indent == line.indent and following.body[:2] == "- "
            ):
                return self.read_block(following.indent, depth + 1)
        return ""

    def _take_deeper(self, indent: int) -> list[str]:
        first = self._at
        while self._is_within(indent + 1):
            self._at += 1
        return [line.body for line in self._lines[first : self._at]]

    def _read_json(self, position: int) -> Any:
        """Read JSON that begins at this position and ends at the end of a line. If the value is in
        another notation, read only this line."""
        self._values += 1
        if self._values > MAX_VALUES:
            raise UnreadableError("too many values")
        first = self._lines[self._at].body[position:]
        text = "\n".join([first, *(line.body for line in self._lines[self._at + 1 :])])
        try:
            value, end = _DECODER.raw_decode(text)
        except (ValueError, RecursionError):
            self._at += 1
            return join_values(read_relaxed(first.rstrip("`;, ")))
        rest = text[end : end + 200].partition("\n")[0]
        if rest.strip("`;, \t\r"):
            raise UnreadableError("words after a value")
        self._at += text.count("\n", 0, end) + 1
        return value


def join_values(items: list[Any]) -> Any:
    """Return the value if there is only one; otherwise, return all values joined into a list or a
    dict."""
    return items[0] if len(items) == 1 and not isinstance(items[0], Pair) else join_items(items)


def _join(items: list[Any]) -> Any:
    """Join pairs into a dict, or into a list of dicts if keys repeat. If a single dict follows a
    single label, it becomes the label's arguments."""
    objects: list[Any] = [{}]
    for item in items:
        if not isinstance(item, Pair):
            if (
                len(items) == 2
                and len(objects[-1]) == 1
                and isinstance(item, dict)
                and item is items[-1]
            ):
                objects[-1]["arguments"] = item
                continue
            objects += [item, {}]
            continue
        if item[0] in objects[-1]:
            objects.append({})
        objects[-1][item[0]] = item[1]
    kept = [each for each in objects if each != {}]
    return (
        kept[0]
        if len(kept) == 1 and isinstance(kept[0], dict) and isinstance(items[0], Pair)
        else kept or items
    )


def _unquote(value: str) -> str:
    value = value.strip(_DECORATION)
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
