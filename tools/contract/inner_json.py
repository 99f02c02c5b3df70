"""Finds JSON in the texts of a call's params, for everything that looks at what a call carries."""

import json
from typing import Any

LONGEST_INTEGER = 4_000
TOO_DEEP = "JSON nested too deep to read"


def json_in(text: str) -> list[Any]:
    """Return the JSON in a text: one object or list, or one value on each line. TOO_DEEP stands for too many levels."""
    if not text.lstrip().startswith(("{", "[")):
        return []
    for parts in ([text], text.splitlines()):
        try:
            return [json.loads(part, parse_int=_number) for part in parts if part.strip()]
        except RecursionError:
            return [TOO_DEEP]
        except ValueError:
            continue
    return []


def _number(digits: str) -> int | float:
    """Python refuses to read longer integers, and other programs read the JSON that holds one."""
    return int(digits) if len(digits) <= LONGEST_INTEGER else float(digits)
