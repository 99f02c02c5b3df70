"""Parsing of JSON or YAML descriptions into plain data; size, depth and repetition are limited."""

import json
import math
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from tools.contract import make_storable

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_EVENTS_PER_CHECK = 10_000
_UNSTORABLE = re.compile(r"\\u0000|\\u[dD][89a-fA-F]|\\x00|\\0|\x00")
"""Escapes that may stand for characters that databases cannot store; valid surrogate pairs match,
too."""
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,30})")
_FLOAT = re.compile(
    r"[-+]?(?:[0-9]{1,30}\.[0-9]{0,30}|\.[0-9]{1,30}|[0-9]{1,30}(?=[eE]))(?:[eE][-+]?[0-9]{1,3})?"
)
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}


class DocumentError(ValueError):
    """A description that cannot be read; the message gives the reason, for the admin."""


@dataclass(frozen=True)
class DocumentLimits:
    """The limits for reading a description.

    Attributes:
        size: bytes of its text.
        nodes: values; the values behind an alias are counted each time it is used. A value takes at
            most about 150 bytes of memory.
        operations: operations to read; later ones are skipped.
        depth: levels of nesting.
        seconds: processor time for reading the operations; operations not read by then are skipped.
        parsing_s: processor time for parsing a YAML text.
    """

    size: int = 64_000_000
    nodes: int = 4_000_000
    operations: int = 10_000
    depth: int = 200
    seconds: float = 30.0
    parsing_s: float = 120.0


def read_document(text: str, limits: DocumentLimits) -> dict[str, Any]:
    """Parse the document into plain JSON data; keys, dates, `yes`, `no`, `on` and `12:30` are text.

    Raises:
        DocumentError: too large, too deep, neither JSON nor YAML, or not an object.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > limits.size:
        raise DocumentError(f"the description has {size:,} bytes; the limit is {limits.size:,}")
    plain = text.removeprefix("\ufeff")
    document = _parse_json(plain, limits) if plain.lstrip()[:1] == "{" else None
    if document is None:
        document = _parse_yaml(plain, limits)
    _refuse_depth(document, limits.depth)
    if not isinstance(document, dict):
        raise DocumentError(f"the description is {type(document).__name__}, not an object")
    if size == len(text.encode("utf-8", "ignore")) and not _UNSTORABLE.search(plain):
        return document  # avoid the copy that make_storable creates
    return make_storable(document)  # type: ignore[no-any-return]


def _parse_json(text: str, limits: DocumentLimits) -> Any:
    """Parse JSON; return None if it is not JSON, because YAML may also begin with a brace.

    The values are counted before any is created, by the characters that begin or separate them,
    including those inside strings.
    """
    if sum(text.count(sign) for sign in ",[{") > limits.nodes:
        raise DocumentError(f"the description contains more than {limits.nodes:,} values")
    try:
        return json.loads(text)
    except ValueError:
        return None
    except RecursionError:
        raise DocumentError("the description is nested too deeply") from None


def _refuse_depth(document: Any, depth: int) -> None:
    """Refuse a document that is nested too deeply; avoid recursion, which could exhaust the
    stack."""
    level = [document]
    for _ in range(depth + 1):
        level = [child for node in level for child in _list_children(node)]
        if not level:
            return
    raise DocumentError(f"the description is nested more than {depth} levels deep")


def _list_children(node: Any) -> Iterator[Any]:
    values = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return (value for value in values if isinstance(value, dict | list))


def _parse_yaml(text: str, limits: DocumentLimits) -> Any:
    builder = _DocumentBuilder(limits)
    ends_at = time.thread_time() + limits.parsing_s
    try:
        for number, event in enumerate(yaml.parse(text, Loader=_Parser)):
            builder.handle(event)
            if number % _EVENTS_PER_CHECK == 0 and time.thread_time() > ends_at:
                raise DocumentError(
                    "the description takes too long to parse; JSON is faster than YAML"
                )
    except yaml.MarkedYAMLError as error:
        where = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise DocumentError(f"{where}this is neither JSON nor YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise DocumentError(f"this is neither JSON nor YAML: {error}") from None
    return builder.root


@dataclass
class _OpenNode:
    """An unfinished mapping or list; `weight` counts its values, with aliases expanded."""

    value: Any
    anchor: str | None
    key: str | None = None
    weight: int = 1


class _DocumentBuilder:
    """A builder of plain data from YAML events, without recursion; the data has only JSON's
    types."""

    def __init__(self, limits: DocumentLimits) -> None:
        self.root: Any = None
        self._limits = limits
        self._open: list[_OpenNode] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._documents = 0

    def handle(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._add_value(_convert_scalar(event), 1, event.anchor)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            if len(self._open) >= self._limits.depth:
                raise DocumentError(
                    f"the description is nested more than {self._limits.depth} levels deep"
                )
            self._open.append(
                _OpenNode({} if isinstance(event, yaml.MappingStartEvent) else [], event.anchor)
            )
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            done = self._open.pop()
            self._add_value(done.value, done.weight, done.anchor)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise DocumentError(
                    f"the alias {event.anchor!r} is inside its own anchor, or before it"
                )
            self._add_value(*self._anchors[event.anchor], None)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise DocumentError("the text contains more than one document")

    def _add_value(self, value: Any, weight: int, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = (value, weight)
        if not self._open:
            self.root = value
            return
        parent = self._open[-1]
        parent.weight += weight
        if parent.weight > self._limits.nodes:
            raise DocumentError(
                f"the description contains more than {self._limits.nodes:,} values, aliases included"
            )
        if isinstance(parent.value, list):
            parent.value.append(value)
        elif parent.key is None:
            parent.key = _to_key(value)
        else:
            _set_key(parent.value, parent.key, value)
            parent.key = None


def _to_key(value: Any) -> str:
    """Convert a key to text, such as 200 or null."""
    if isinstance(value, dict | list):
        raise DocumentError("a key must be plain text")
    return value if isinstance(value, str) else json.dumps(value)


def _set_key(mapping: dict[str, Any], key: str, value: Any) -> None:
    """Set the key; `<<` merges another mapping without replacing keys."""
    if key != "<<":
        mapping[key] = value
        return
    for other in value if isinstance(value, list) else [value]:
        for name, child in other.items() if isinstance(other, dict) else ():
            mapping.setdefault(name, child)


def _convert_scalar(event: yaml.ScalarEvent) -> Any:
    """Convert a scalar as in YAML 1.2: everything but true, false, null and decimal numbers is
    text."""
    text: str = event.value
    if event.tag is None and not event.implicit[0]:
        return text
    if event.tag is not None:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text
