"""JSON inside text params, for every check that inspects the contents of a call."""

import json
from collections.abc import Callable
from typing import Any

LONGEST_INTEGER = 4_000
TOO_DEEP = "JSON nested too deeply to read"


def parse_embedded_json(
    text: str, build: Callable[[list[tuple[str, Any]]], dict[str, Any]] = dict
) -> list[Any]:
    """Return the JSON object or list in the text, or one from each line.

    Return [TOO_DEEP] if one is nested too deeply, and [] for any other text.

    Args:
        build: builds an object from its names and values, in which a name can occur again.
    """
    if not text.lstrip().startswith(("{", "[")):
        return []
    for parts in ([text], text.splitlines()):
        try:
            return [
                json.loads(part, parse_int=_parse_integer, object_pairs_hook=build)
                for part in parts
                if part.strip()
            ]
        except RecursionError:
            return [TOO_DEEP]
        except ValueError:
            continue
    return []


def _parse_integer(digits: str) -> int | float:
    """Parse very long integers as floats: Python refuses them, but other programs accept them."""
    return int(digits) if len(digits) <= LONGEST_INTEGER else float(digits)
