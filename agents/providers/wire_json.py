"""Parse JSON from model servers, strictly enough that the values can be stored and sent back."""

import json
import math
from typing import Any

from tools.contract.canonical import refuse_constant

MAX_DEPTH = 100


def read_json(text: str) -> Any:
    """Parse a text as strict JSON.

    Raises:
        ValueError: the text is not JSON, or has NaN, infinite numbers, or more than 100 levels.
    """
    try:
        value = _STRICT.decode(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deeper(value, MAX_DEPTH):
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
    return value


def is_json_object(text: str) -> bool:
    """Return True if the text is an object in strict JSON."""
    try:
        return isinstance(read_json(text), dict)
    except ValueError:
        return False


def _is_deeper(value: Any, levels: int) -> bool:
    level = [value]
    for _ in range(levels + 1):
        level = [child for parent in level for child in _list_children(parent)]
        if not level:
            return False
    return True


def _list_children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _parse_finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text:.40} is too large a number")
    return number


_STRICT = json.JSONDecoder(parse_constant=refuse_constant, parse_float=_parse_finite)
