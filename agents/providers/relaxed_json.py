"""Parse text that resembles JSON, such as JavaScript, Python calls and command lines, without
running it.

A call in the text becomes a dict with the called name as its only key: `find(q="a")` is read as
`{"find": {"q": "a"}}`.
"""

import re
from collections.abc import Iterator
from typing import Any

MAX_TOKENS = 50_000
MAX_DEPTH = 30
_TOKEN = re.compile(
    r"""\s*(?:("[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*')|(=>|->|[{}\[\](),;:=])|([^\s"'{}\[\](),;:=<>]+)|(\S))""",
    re.DOTALL,
)
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_SEPARATORS = frozenset({":", "=", "=>", "->"})
_KEYWORDS = frozenset({"await", "const", "let", "var", "return"})
_ANNOUNCEMENT = frozenset(
    {"calling", "invoking", "running", "executing", "using", "tool", "function", "the", "with"}
)
"""The words with which a model announces a call; they are next to the call's name and outside
brackets."""
_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?")
_END = ("", "")


class UnreadableError(ValueError):
    """The text does not follow the notation in which it was parsed."""


class Pair(tuple[str, Any]):
    """A key and its value, not yet joined into a dict."""


class _Word(str):
    """A text that was written without quotes."""


def read_relaxed(text: str) -> list[Any]:
    """Return the values and pairs in the text. A bracket that is not closed ends at the end of the
    text.

    Raises:
        UnreadableError: the text has a different structure, such as a sentence.
    """
    return _TokenReader(text).read_items("", 0)


def join_items(items: list[Any]) -> Any:
    """Return a dict if all items are pairs; otherwise, return a list in which each pair is a
    dict."""
    if items and all(isinstance(item, Pair) for item in items):
        return dict(items)
    return [dict([item]) if isinstance(item, Pair) else item for item in items]


class _TokenReader:
    def __init__(self, text: str) -> None:
        self._tokens = self._list_tokens(text)
        self._next = _END
        self._take()

    @staticmethod
    def _list_tokens(text: str) -> Iterator[tuple[str, str]]:
        for count, found in enumerate(_TOKEN.finditer(text)):
            if found[4] or count > MAX_TOKENS:
                raise UnreadableError("a character that no notation has here")
            quoted, sign, word = found[1], found[2], found[3]
            yield ("text", quoted[1:-1]) if quoted else ("sign", sign) if sign else ("word", word)

    def _take(self) -> tuple[str, str]:
        taken, self._next = self._next, next(self._tokens, _END)
        return taken

    def _is_sign(self, *signs: str) -> bool:
        return self._next[0] == "sign" and self._next[1] in signs

    def read_items(self, closing: str, depth: int) -> list[Any]:
        """Read the items up to the closing bracket, which is read too, or up to the end of the
        text."""
        if depth > MAX_DEPTH:
            raise UnreadableError("too deep")
        items: list[Any] = []
        is_separated = True
        while self._next != _END:
            if self._is_sign(",", ";"):
                self._take()
                is_separated = True
            elif self._is_sign("}", "]", ")"):
                if self._take()[1] != closing:
                    raise UnreadableError("a bracket closes that was not opened")
                return items
            elif is_separated or not isinstance(items[-1], str):
                items.append(self._read_item(depth))
                is_separated = False
            elif len(items) == 1 and isinstance(items[0], _Word):
                items = [{items[0]: join_items(self._read_options(depth))}]
            else:
                raise UnreadableError("words beside each other")
        return items

    def _read_options(self, depth: int) -> list[Any]:
        """Read the arguments of a command, after its name. They are pairs, or options such as `--q
        "a"`."""
        options: list[Any] = []
        while self._next != _END and not self._is_sign("}", "]", ")"):
            if self._is_sign(",", ";"):
                self._take()
                continue
            is_option = self._next[0] == "word" and self._next[1].startswith("--")
            item = self._read_item(depth)
            if is_option and isinstance(item, str):
                item = Pair((item, self._read_value(depth)))
            if isinstance(item, dict) and not options:
                return [Pair(each) for each in item.items()]
            if not isinstance(item, Pair):
                raise UnreadableError("a command with words")
            options.append(Pair((item[0].removeprefix("--"), item[1])))
        return options

    def _read_item(self, depth: int) -> Any:
        value = self._read_value(depth)
        if not self._is_sign(*_SEPARATORS) or not isinstance(value, str):
            return value
        sign = self._take()[1]
        inner = self._read_value(depth)
        is_assigned = sign == "=" and depth == 0 and isinstance(inner, dict) and len(inner) == 1
        return inner if is_assigned else Pair((str(value), inner))

    def _read_value(self, depth: int) -> Any:
        kind, taken = self._take()
        while kind == "word" and self._is_skipped(taken, depth):
            kind, taken = self._take()
        if kind == "text":
            return taken
        if kind == "sign" and taken in _CLOSING:
            items = self.read_items(_CLOSING[taken], depth + 1)
            return join_items(items) if items or taken != "{" else {}
        if kind != "word":
            raise UnreadableError("a value is missing")
        if self._is_sign("(", "{"):
            return {taken: self._read_arguments(depth)}
        if taken in _WORDS:
            return _WORDS[taken]
        return float(taken) if _NUMBER.fullmatch(taken) else _Word(taken)

    def _is_skipped(self, word: str, depth: int) -> bool:
        is_announcement = (
            depth == 0 and word.lower() in _ANNOUNCEMENT and not self._is_sign(*_SEPARATORS)
        )
        return word in _KEYWORDS or is_announcement

    def _read_arguments(self, depth: int) -> Any:
        items = self.read_items(_CLOSING[self._take()[1]], depth + 1)
        if not items:
            return {}
        return items[0] if len(items) == 1 and isinstance(items[0], dict) else join_items(items)
