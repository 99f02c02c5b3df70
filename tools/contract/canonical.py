"""Canonical JSON: equal values have the same text and the same hash."""

import hashlib
import json
import re
from typing import Any

from tools.contract.errors import ErrorCode, ToolError

_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)
MAX_DEPTH = 100
"""The maximum depth of nested lists and objects in a stored value. It is limited because recursive
code must be able to read the value."""
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def canonical_json(value: Any) -> str:
    """Encode the value as JSON with sorted keys and unescaped Unicode, without spaces or NaN.

    Raises:
        ValueError, TypeError: the value is not JSON.
    """
    return _CANONICAL.encode(value)


def storable_json(value: Any) -> str:
    """Encode the value as canonical JSON that every database can store.

    Raises:
        ValueError, TypeError: the value is not JSON, is nested too deeply, or a text in it cannot
            be stored.
        RecursionError: it is nested far too deeply.
    """
    text = canonical_json(value)
    if (fault := find_unstorable(text)) is not None:
        raise ValueError(fault)
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_too_deep(value):
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
    return text


def _is_too_deep(value: Any) -> bool:
    level = [value] if isinstance(value, dict | list | tuple) else []
    for _ in range(MAX_DEPTH):
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [
            child
            for children in inner
            for child in children
            if isinstance(child, dict | list | tuple)
        ]
    return bool(level)


def find_unstorable(json_text: str) -> str | None:
    """Describe the first character in the value that JSON can contain but some database cannot
    store; None if there is none."""
    if "\\u0000" in json_text and _ESCAPED_NUL.search(json_text):
        return "a text contains a NUL character"
    if json_text.isascii():
        return None
    try:
        json_text.encode("utf-8")
    except UnicodeEncodeError:
        return "a text contains half a surrogate pair"
    return None


def make_storable(value: Any) -> Any:
    """Replace NUL characters and lone surrogates, which not every database can store, with
    U+FFFD."""
    if isinstance(value, str):
        if value.isascii() and "\0" not in value:
            return value
        return (
            value.replace("\0", "\ufffd")
            .encode("utf-16", "surrogatepass")
            .decode("utf-16", "replace")
        )
    if isinstance(value, list):
        return [make_storable(child) for child in value]
    if isinstance(value, dict):
        return {make_storable(key): make_storable(child) for key, child in value.items()}
    return value


def fingerprint(value: Any) -> str:
    """Compute the SHA-256 of the canonical JSON, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def build_signature(tool_name: str, params: dict[str, Any]) -> str:
    """Build `toolName::canonical JSON of params`; calls with the same signature in one run are
    duplicates."""
    return f"{tool_name}::{canonical_json(params)}"


def parse_arguments(text: str) -> dict[str, Any]:
    """Parse the model's arguments strictly: one object, without duplicate keys or NaN.

    An empty text counts as `{}`, because many models send it for a tool without params.

    Raises:
        ToolError: INVALID_TOOL_ARGUMENTS, with the fault.
    """
    if not text.strip():
        return {}
    try:
        value = _STRICT.decode(text)
        storable_json(value)
    except (ValueError, RecursionError) as error:
        raise _build_argument_error(f"The arguments are not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise _build_argument_error(f"The arguments must be an object, not {type(value).__name__}.")
    return value


def refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object; raise ValueError for a key that appears twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        duplicate = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {duplicate!r} appears twice")
    return found


def refuse_constant(name: str) -> float:
    """Raise ValueError: NaN and Infinity are not numbers in JSON."""
    raise ValueError(f"{name} is not a number")


_STRICT = json.JSONDecoder(object_pairs_hook=refuse_duplicates, parse_constant=refuse_constant)


def _build_argument_error(message: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_TOOL_ARGUMENTS,
        message,
        expected="one JSON object with the tool's parameters",
        recovery_hint="Send the call again with well-formed arguments.",
        attempted=False,
    )
