"""Reads the text of a description, JSON or YAML, as plain data: bounded in size, in depth and in repetition."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from tools.contract import made_storable

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,30})")
_FLOAT = re.compile(r"[-+]?(?:[0-9]{1,30}\.[0-9]{0,30}|\.[0-9]{1,30}|[0-9]{1,30}(?=[eE]))(?:[eE][-+]?[0-9]{1,3})?")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}


class DocumentError(ValueError):
    """The text is no description that can be read; says why, for the admin."""


@dataclass(frozen=True)
class Limits:
    """How much of a description is read.

    Attributes:
        size: bytes of its text.
        nodes: values in it if it is YAML, each alias counted as often as it stands for something.
        operations: that are looked at; later ones are left out.
        depth: how deeply values may stand inside each other.
        seconds: after which the operations that are not read yet are left out.
    """

    size: int = 20_000_000
    nodes: int = 1_000_000
    operations: int = 10_000
    depth: int = 200
    seconds: float = 30.0


def read_document(text: str, limits: Limits) -> dict[str, Any]:
    """The document as plain JSON data; keys are text, and so are dates, `yes`, `no`, `on` and `12:30`.

    Raises:
        DocumentError: too large, too deep, neither JSON nor YAML, or not an object.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > limits.size:
        raise DocumentError(f"the description has {size:,} bytes; at most {limits.size:,} are read")
    plain = text.removeprefix("\ufeff")
    document = _from_json(plain) if plain.lstrip()[:1] == "{" else None
    if document is None:
        document = _from_yaml(plain, limits)
    _refuse_depth(document, limits.depth)
    if not isinstance(document, dict):
        raise DocumentError(f"the description is {type(document).__name__}, not an object")
    return made_storable(document)  # type: ignore[no-any-return]


def _from_json(text: str) -> Any:
    """None if this is not JSON: YAML may begin with a brace too."""
    try:
        return json.loads(text)
    except ValueError:
        return None
    except RecursionError:
        raise DocumentError("the description is nested too deeply") from None


def _refuse_depth(document: Any, depth: int) -> None:
    """Level by level, so that no nesting can exhaust the stack."""
    level = [document]
    for _ in range(depth + 1):
        level = [child for node in level for child in _children(node)]
        if not level:
            return
    raise DocumentError(f"the description is nested more than {depth} deep")


def _children(node: Any) -> Iterator[Any]:
    values = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return (value for value in values if isinstance(value, dict | list))


def _from_yaml(text: str, limits: Limits) -> Any:
    building = _Building(limits)
    try:
        for event in yaml.parse(text, Loader=_Parser):
            building.take(event)
    except yaml.MarkedYAMLError as error:
        where = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise DocumentError(f"{where}this is neither JSON nor YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise DocumentError(f"this is neither JSON nor YAML: {error}") from None
    return building.root


@dataclass
class _Open:
    """A mapping or list that is not finished; `weight` counts what it holds, aliases included."""

    value: Any
    anchor: str | None
    key: str | None = None
    weight: int = 1


class _Building:
    """Makes data of YAML's events one by one, without recursion. Only what JSON can say too is understood."""

    def __init__(self, limits: Limits) -> None:
        self.root: Any = None
        self._limits = limits
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._put(_scalar(event), 1, event.anchor)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            if len(self._open) >= self._limits.depth:
                raise DocumentError(f"the description is nested more than {self._limits.depth} deep")
            self._open.append(_Open({} if isinstance(event, yaml.MappingStartEvent) else [], event.anchor))
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            done = self._open.pop()
            self._put(done.value, done.weight, done.anchor)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise DocumentError(f"the alias {event.anchor!r} stands inside itself, or before its anchor")
            self._put(*self._anchors[event.anchor], None)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise DocumentError("the text holds more than one document")

    def _put(self, value: Any, weight: int, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = (value, weight)
        if not self._open:
            self.root = value
            return
        parent = self._open[-1]
        parent.weight += weight
        if parent.weight > self._limits.nodes:
            raise DocumentError(f"the description holds more than {self._limits.nodes:,} values, aliases included")
        if isinstance(parent.value, list):
            parent.value.append(value)
        elif parent.key is None:
            parent.key = _key(value)
        else:
            _set(parent.value, parent.key, value)
            parent.key = None


def _key(value: Any) -> str:
    """Keys like 200 or null are meant as text."""
    if isinstance(value, dict | list):
        raise DocumentError("a key has to be a word")
    return value if isinstance(value, str) else json.dumps(value)


def _set(mapping: dict[str, Any], key: str, value: Any) -> None:
    """`<<` merges another mapping, whose keys give way."""
    if key != "<<":
        mapping[key] = value
        return
    for other in value if isinstance(value, list) else [value]:
        for name, child in other.items() if isinstance(other, dict) else ():
            mapping.setdefault(name, child)


def _scalar(event: yaml.ScalarEvent) -> Any:
    """By YAML 1.2's core rules, by which only true, false, null and decimal numbers are no text."""
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
