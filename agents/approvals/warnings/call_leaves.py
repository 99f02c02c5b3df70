"""The single values of a call, with the names that lead to them. JSON in a text counts as the
values that it contains."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tools.contract.embedded_json import TOO_DEEP, parse_embedded_json
from tools.contract.param_words import fold_name, split_name

MAX_COST = 60_000
"""The maximum number of values that are listed; a value with a long path or a new name counts as
several."""
COST_OF_NAME, NAMES_FOR_ONE = 4, 20
"""The cost of a new name, and the number of names on a path that cost as much as a value."""
LONGEST_NAME = 100
_NAMING = frozenset(
    {"name", "key", "field", "param", "parameter", "attribute", "property", "header", "variable"}
)
"""Words for a name that another value gives to the value beside it."""
_VALUE = frozenset({"value"})
_PAIR_SIZE = 2
MAX_CALLED = 5
"""The maximum number of names that are read for one value."""
_USERS = frozenset({"user", "username", "login", "email"})
_SHORT_PASSWORDS = frozenset({"pass", "pw"})
"""Names that mean a password only beside the name of a user."""
_PLAIN_PASSWORD = re.compile(r"(?=\S*\d|\S{6})\S+")
"""One word with a digit or of at least six characters."""


class CallLeaf(NamedTuple):
    """A single value, or a list.

    Attributes:
        names: the names that lead to the value.
        scope: the number of the innermost object in a list that contains the value; 0 if there is
            none.
        entries: the single values: the value itself, or those in the list at any depth.
        called: the names that values beside it give to the value, as in `{"name": "size", "value":
            3}`.
        named_by: the paths of the values that give these names.
        is_in_text: True if the value is in JSON in a text.
        outer: the scope of the list, if the object in it consists of this value and its name.
    """

    names: tuple[str, ...]
    value: Any
    scope: int
    entries: Sequence[Any]
    called: tuple[str, ...] = ()
    named_by: tuple[str, ...] = ()
    is_in_text: bool = False
    outer: int | None = None

    @property
    def path(self) -> str:
        return ".".join(self.names)

    @property
    def all_names(self) -> tuple[str, ...]:
        return (self.names[-1], *self.called)


class _Repeating(dict[str, Any]):
    """A JSON object in which a name occurs more than once; `pairs` has all of its values."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


class _Object(NamedTuple):
    node: Mapping[str, Any]
    names: tuple[str, ...] = ()
    scope: int = 0
    outer: int | None = None
    is_in_text: bool = False


@dataclass
class CallLeaves:
    """The values of a call; those outside of lists come first.

    Attributes:
        keys: the paths to all values, including objects.
        names: the last names of these paths.
        unread: the path of a value that could not be listed, because there are too many values or
            because its JSON is nested too deeply; empty if all values are listed.
        unread_params: the outermost params that may have such values.
        texts: the paths of texts with JSON, and these texts.
    """

    leaves: list[CallLeaf] = field(default_factory=list)
    keys: list[tuple[str, ...]] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    unread: str = ""
    unread_params: set[str] = field(default_factory=set)
    texts: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    _outside: deque[_Object] = field(default_factory=deque)
    _inside: deque[_Object] = field(default_factory=deque)
    _scopes: int = 0

    @classmethod
    def of(cls, roots: Iterable[Mapping[str, Any]]) -> CallLeaves:
        """List the values in objects."""
        found = cls()
        found._list(roots)
        return found

    def _list(self, roots: Iterable[Mapping[str, Any]]) -> None:
        nodes = list(roots)
        self._outside.extend(map(_Object, nodes))
        left = MAX_COST
        while self._outside or self._inside:  # no recursion, because JSON may be deep
            here = (self._outside or self._inside).popleft()
            pairs = here.node.pairs if isinstance(here.node, _Repeating) else here.node.items()
            hints, has_user = _read_hints(here.node)
            for name, value in pairs:
                names = (*here.names, str(name))
                left -= 1 + len(names) // NAMES_FOR_ONE
                left -= 0 if names[-1] in self.names else COST_OF_NAME
                if left < 0:
                    self.unread = ".".join(names)
                    self.unread_params.update(str(name) for node in nodes for name in node)
                    return
                self.keys.append(names)
                self.names.add(names[-1])
                leaf = CallLeaf(names, value, here.scope, (), is_in_text=here.is_in_text)
                if _ends_with(names[-1], _VALUE):
                    by = tuple(".".join((*here.names, key)) for key in hints)
                    leaf = leaf._replace(called=tuple(hints.values()), named_by=by)
                if (
                    has_user
                    and fold_name(names[-1]) in _SHORT_PASSWORDS
                    and _may_be_password(value)
                ):
                    leaf = leaf._replace(called=("password",), named_by=())
                self._add(here, leaf)

    def _add(self, here: _Object, leaf: CallLeaf) -> None:
        names, value = leaf.names, _open(leaf.value)
        is_in_text = leaf.is_in_text
        if isinstance(leaf.value, str) and not isinstance(value, str):
            self.texts.append((names, leaf.value))
            is_in_text = True
        leaf = leaf._replace(value=value)
        if value is TOO_DEEP:
            self._skip(names)
        elif isinstance(value, Mapping):
            waiting = self._inside if here.scope else self._outside
            waiting.append(_Object(value, names, here.scope, is_in_text=is_in_text))
        elif isinstance(value, list):
            entries, objects = _flatten(value)
            self.leaves.append(leaf._replace(entries=entries))
            if any(each is TOO_DEEP for each in entries):
                self._skip(names)
            is_in_text = is_in_text or any(isinstance(each, str) for each in value)
            for each in objects:
                self._scopes += 1
                self._inside.append(_Object(each, names, self._scopes, here.scope, is_in_text))
        else:
            is_pair = len(leaf.called) == 1 and len(here.node) == _PAIR_SIZE
            outer = here.outer if is_pair else None
            self.leaves.append(leaf._replace(entries=(value,), outer=outer))

    def _skip(self, names: tuple[str, ...]) -> None:
        self.unread = ".".join(names)
        self.unread_params.add(names[0])


def _open(value: Any) -> Any:
    """Return the JSON that a text contains; return other values unchanged."""
    if not isinstance(value, str):
        return value
    found = parse_embedded_json(value, _keep_repeated)
    return found[0] if len(found) == 1 else found or value


def _keep_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    node = dict(pairs)
    return node if len(node) == len(pairs) else _Repeating(pairs)


def _flatten(entries: list[Any]) -> tuple[list[Any], list[Mapping[str, Any]]]:
    """Return the single values and the objects in a list, and in the lists in it."""
    single, objects = list[Any](), list[Mapping[str, Any]]()
    waiting = [iter(entries)]
    while waiting:
        for entry in waiting[-1]:
            value = _open(entry)
            if isinstance(value, list):
                waiting.append(iter(value))
                break
            if isinstance(value, Mapping):
                objects.append(value)
            else:
                single.append(value)
        else:
            waiting.pop()
    return single, objects


def _may_be_password(value: Any) -> bool:
    return not isinstance(value, str) or _PLAIN_PASSWORD.fullmatch(value) is not None


def _read_hints(node: Mapping[str, Any]) -> tuple[dict[str, str], bool]:
    """Return the texts of an object that may name a value beside them, by their own names, and
    whether the object names a user."""
    texts, has_user = dict[str, str](), False
    for key, text in node.items():
        has_user = has_user or fold_name(str(key)) in _USERS
        is_short = isinstance(text, str) and len(text) <= LONGEST_NAME
        if is_short and len(texts) < MAX_CALLED and _ends_with(str(key), _NAMING):
            texts[str(key)] = text
    return texts, has_user


def _ends_with(name: str, words: frozenset[str]) -> bool:
    """Return True if the last word of a name is one of these words: `ParameterKey`."""
    return not words.isdisjoint(split_name(name)) and name.lower().endswith(tuple(words))
