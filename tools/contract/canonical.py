"""One way to write a value down, so that equal values have equal text and equal hashes."""

import hashlib
import json
import re
from typing import Any

from .errors import ErrorCode, ToolError

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def canonical_json(value: Any) -> str:
    """Sorted keys, no spaces, no NaN, characters as they are.

    Raises:
        ValueError, TypeError: the value is not JSON.
    """
    return _CANONICAL.encode(value)


def storable_json(value: Any) -> str:
    """The canonical JSON of a value that every database can keep.

    Raises:
        ValueError, TypeError: the value is not JSON, or a text in it cannot be stored.
    """
    text = canonical_json(value)
    if fault := unstorable_in(text):
        raise ValueError(fault)
    return text


def unstorable_in(json_text: str) -> str:
    """What no database keeps though JSON can write it; empty if there is nothing of the kind."""
    if "\\u0000" in json_text and _ESCAPED_NUL.search(json_text):
        return "a text holds a NUL character"
    if json_text.isascii():
        return ""
    try:
        json_text.encode("utf-8")
    except UnicodeEncodeError:
        return "a text holds half a surrogate pair"
    return ""


def made_storable(value: Any) -> Any:
    """The value with U+FFFD in the place of NUL characters and lone surrogates, which no database keeps."""
    if isinstance(value, str):
        if value.isascii() and "\0" not in value:
            return value
        return value.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [made_storable(child) for child in value]
    if isinstance(value, dict):
        return {made_storable(key): made_storable(child) for key, child in value.items()}
    return value


def fingerprint(value: Any) -> str:
    """SHA-256 over the canonical JSON, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def signature_of(tool_name: str, params: dict[str, Any]) -> str:
    """`toolName::canonical JSON of params`: equal ones in one run are duplicates."""
    return f"{tool_name}::{canonical_json(params)}"


def parse_arguments(text: str) -> dict[str, Any]:
    """The model's arguments as an object, read strictly: no doubled key, no NaN, nothing but an object.

    An empty text counts as `{}`, because many models send it for a tool without params.

    Raises:
        ToolError: INVALID_TOOL_ARGUMENTS, quoting what is wrong.
    """
    if not text.strip():
        return {}
    try:
        value = _STRICT.decode(text)
        storable_json(value)
    except (ValueError, RecursionError) as error:
        raise _invalid(f"The arguments are not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise _invalid(f"The arguments are {type(value).__name__}, not an object.")
    return value


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        doubled = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {doubled!r} stands twice")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


_STRICT = json.JSONDecoder(object_pairs_hook=_without_doubles, parse_constant=_no_constant)


def _invalid(message: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_TOOL_ARGUMENTS,
        message,
        expected="one JSON object with the tool's parameters",
        recovery_hint="Send the call again with well-formed arguments.",
        attempted=False,
    )
