"""Assemble a message from streamed pieces, however the server splits it."""

import json
from collections.abc import Callable
from typing import Any

from agents.providers.content_text import extract_text

_NOT_CONCATENATED = frozenset({"id", "type", "role", "name", "format"})


class StreamedMessage:
    """Collects deltas into an assistant message.

    A different id at the same index starts another call. Without an index, a delta belongs to the
    call with its id, or else to the last call. A name after complete arguments starts another call.
    Unknown fields, such as reasoning and signatures, are merged and kept.

    Args:
        is_offered: returns True for the name of an offered tool.
    """

    def __init__(self, is_offered: Callable[[str], bool]) -> None:
        self._is_offered = is_offered
        self._text: list[str] = []
        self._parts: list[Any] = []
        self._extra: dict[str, Any] = {}
        self._calls: list[_StreamedCall] = []

    def add(self, delta: Any) -> str:
        """Add a delta, and return its text."""
        if not isinstance(delta, dict):
            return ""
        text = ""
        for key, value in delta.items():
            if key == "content":
                text = self._add_content(value)
            elif key == "tool_calls":
                self._add_calls(value)
            elif key != "role" and value is not None:
                self._extra[key] = _merge(self._extra.get(key), value, key)
        return text

    def build(self) -> dict[str, Any]:
        """Build the message so far; it has `tool_calls` only if there are any."""
        content: Any = "".join(self._text) if self._text else None
        message = {"role": "assistant", "content": self._parts or content, **self._extra}
        calls = [call.build_entry() for call in self._calls]
        if calls:
            message["tool_calls"] = calls
        return message

    def _add_content(self, content: Any) -> str:
        text = extract_text(content)
        if isinstance(content, list) and not self._parts:
            self._parts = [{"type": "text", "text": "".join(self._text)}] if self._text else []
        if isinstance(content, list):
            self._parts.extend(content)
        elif self._parts and text:
            self._parts.append({"type": "text", "text": text})
        elif text:
            self._text.append(text)
        return text

    def _add_calls(self, entries: Any) -> None:
        if isinstance(entries, dict):
            entries = [entries]
        if not isinstance(entries, list):
            return
        for position, entry in enumerate(entries):
            if isinstance(entry, dict):
                self._add_call(_CallPiece(entry), first_in_delta=position == 0)

    def _add_call(self, piece: "_CallPiece", *, first_in_delta: bool) -> None:
        call = self._find_call(piece)
        unnumbered_sibling = piece.index is None and not first_in_delta and bool(piece.name)
        if call is None or unnumbered_sibling or call.is_followed_by(piece, self._is_offered):
            call = _StreamedCall(piece.index)
            self._calls.append(call)
        call.add(piece, self._is_offered)

    def _find_call(self, piece: "_CallPiece") -> "_StreamedCall | None":
        calls = reversed(self._calls)
        if piece.index is not None and self._calls and self._calls[-1].index == piece.index:
            return self._calls[-1]
        if piece.index is not None:
            return next((call for call in calls if call.index == piece.index), None)
        if piece.id:
            same_id = next((call for call in calls if call.id == piece.id), None)
            if same_id is not None:
                return same_id
        return self._calls[-1] if self._calls else None


class _CallPiece:
    """An entry of a delta's tool_calls; missing and malformed fields are empty."""

    def __init__(self, entry: dict[str, Any]) -> None:
        function = entry.get("function")
        function = function if isinstance(function, dict) else {}
        index, name, call_id = entry.get("index"), function.get("name"), entry.get("id")
        self.index = index if isinstance(index, int) else None
        self.name = name if isinstance(name, str) else ""
        self.id = call_id if isinstance(call_id, str) else ""
        self.arguments = _to_text(function.get("arguments"))
        self.extra = {
            key: value for key, value in entry.items() if key not in ("index", "id", "function")
        }
        self.function_extra = {
            key: value for key, value in function.items() if key not in ("name", "arguments")
        }


class _StreamedCall:
    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id = ""
        self._name = ""
        self._arguments: list[str] = []
        self._extra: dict[str, Any] = {}
        self._function_extra: dict[str, Any] = {}

    def is_followed_by(self, piece: _CallPiece, is_offered: Callable[[str], bool]) -> bool:
        """Return True if the piece begins another call, although its index or id points to this
        call."""
        if piece.id and self.id and piece.id != self.id:
            return True
        if not piece.name or not self._name:
            return False
        if piece.name != self._name and is_offered(self._name):
            return True
        if not piece.arguments and self.id:
            return False
        return _is_complete("".join(self._arguments))

    def add(self, piece: _CallPiece, is_offered: Callable[[str], bool]) -> None:
        self.id = self.id or piece.id
        if piece.name != self._name and not is_offered(self._name):
            self._name += piece.name
        if piece.arguments:
            self._arguments.append(piece.arguments)
        for key, value in piece.extra.items():
            self._extra[key] = _merge(self._extra.get(key), value, key)
        for key, value in piece.function_extra.items():
            self._function_extra[key] = _merge(self._function_extra.get(key), value, key)

    def build_entry(self) -> dict[str, Any]:
        function = {
            "name": self._name,
            "arguments": "".join(self._arguments),
            **self._function_extra,
        }
        return {"id": self.id, **self._extra, "type": "function", "function": function}


def _to_text(arguments: Any) -> str:
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return json.dumps(arguments, ensure_ascii=False)


def _is_complete(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False


def _merge(old: Any, new: Any, key: str) -> Any:
    """Merge a streamed field and its next piece: join texts, merge lists and dicts."""
    if old is None or new is None:
        return old if new is None else new
    if isinstance(old, str) and isinstance(new, str):
        return new or old if key in _NOT_CONCATENATED else old + new
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{name: _merge(old.get(name), value, name) for name, value in new.items()}}
    if isinstance(old, list) and isinstance(new, list):
        return _merge_lists(old, new)
    return new


def _merge_lists(old: list[Any], new: list[Any]) -> list[Any]:
    merged = list(old)
    for item in new:
        position = next(
            (place for place, other in enumerate(merged) if _is_same_item(other, item)), None
        )
        if position is None:
            merged.append(item)
        else:
            merged[position] = _merge(merged[position], item, "")
    return merged


def _is_same_item(other: Any, item: Any) -> bool:
    """Return True if two list items are pieces of the same item: they have the same index and
    type."""
    if (
        not isinstance(other, dict)
        or not isinstance(item, dict)
        or not isinstance(item.get("index"), int)
    ):
        return False
    return other.get("index") == item["index"] and other.get("type") == item.get(
        "type", other.get("type")
    )
