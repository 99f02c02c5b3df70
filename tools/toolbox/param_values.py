"""The values at a path in a call's params, and their sum."""

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Context, Decimal
from typing import Any

from tools.contract import ErrorCode, ToolError, storable_json
from tools.contract.plain_json import describe_value
from tools.toolbox.value_readings import find_key

ABSENT = object()
"""Stands for a value that is missing or null."""
UNCOUNTABLE = Decimal("Infinity")
"""The sum of values if one of them is not a number; it exceeds every limit."""
_EXACT = Context(prec=60)


def find_values(node: Any, path: list[str], *, is_folded: bool = False) -> Iterator[Any]:
    """Yield every value at the path, and `ABSENT` where there is none.

    Args:
        is_folded: values under other spellings of a name are yielded as well.
    """
    if isinstance(node, list) and path:
        for entry in node or [ABSENT]:
            yield from find_values(entry, path, is_folded=is_folded)
    elif not path:
        yield ABSENT if node is None else node
    elif isinstance(node, Mapping) and (keys := _find_keys(node, path[0], is_folded=is_folded)):
        for key in keys:
            yield from find_values(node[key], path[1:], is_folded=is_folded)
    else:
        yield ABSENT


def _find_keys(node: Mapping[str, Any], name: str, *, is_folded: bool) -> list[str]:
    """List the keys that read like the name; other spellings count only if the name itself is a
    key, too."""
    if name not in node:
        return []
    return list(find_key(node, name)) if is_folded else [name]


def is_number(value: Any) -> bool:
    """Return True for a number; True and False are not numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_amount(value: Any) -> bool:
    """Return True for a number of 0 or more. In a sum, a negative number would make room for other
    amounts."""
    return is_number(value) and value >= 0


def add_amounts(values: Iterable[Any]) -> Decimal:
    """Add up the amounts among the values exactly; `UNCOUNTABLE` if a value is not a number.

    A missing value and a negative number count as 0.
    """
    total = Decimal(0)
    for value in values:
        if value is not ABSENT and not is_number(value):
            return UNCOUNTABLE
        if is_amount(value):
            total = _EXACT.add(total, Decimal(repr(value)))
    return total


def format_number(number: int | float | Decimal) -> str:
    """Format a number for people, e.g. `1,250.5`."""
    exact = Decimal(repr(number)) if isinstance(number, int | float) else number
    text = f"{exact:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def write_params(params: object) -> dict[str, Any]:
    """Return, as plain JSON, the params that a tool or a recipe gives to another tool.

    Raises:
        ToolError: TOOL_EXECUTION_FAILED if they are not a JSON object.
    """
    try:
        written = storable_json(params or {})
    except (ValueError, TypeError, RecursionError) as error:
        raise _build_params_error(str(error)) from error
    plain = json.loads(written)
    if not isinstance(plain, dict):
        raise _build_params_error(f"they must be an object, not {describe_value(params)}")
    return plain


def _build_params_error(fault: str) -> ToolError:
    message = f"The params of the call are wrong: {fault}."
    return ToolError(ErrorCode.TOOL_EXECUTION_FAILED, message, attempted=False)
