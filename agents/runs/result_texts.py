"""Read stored results, to search them for the origins of values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tools.contract.param_naming import ParamNaming
from tools.contract.value_shapes import TIME
from tools.toolbox.provenance import SeenText, list_leaves

METADATA = '"metadata"'
"""The last key of a stored result: the model does not see what follows it."""
_NO_METADATA = f"{METADATA}: {{}}}}"
"""The text that completes the part of a stored result that the model has seen."""


def read_result(source: SeenText) -> Mapping[str, Any] | None:
    """Read the text of a stored result; None if it is not one."""
    try:
        result = json.loads(
            source.text if source.text.endswith("}") else source.text + _NO_METADATA
        )
    except ValueError:
        return None
    return result if isinstance(result, dict) and "success" in result else None


def has_content(source: SeenText) -> bool:
    """Return False for the result of a call that failed, or that returned only the call's own
    params, times, small numbers and other values without information."""
    result = read_result(source) if source.request else None
    if result is None:
        return True
    shown = {name: result.get(name) for name in ("data", "markdown")}
    naming = ParamNaming({}, frozenset(shown), is_known=True)
    leaves = list_leaves(shown, frozenset(), naming).leaves if result["success"] else ()
    parts = (
        part
        for leaf in leaves
        if leaf.whole is None or not TIME.fullmatch(leaf.whole.text)
        for part in (leaf.whole, *leaf.parts)
        if part is not None
    )
    return any(source.requested.find(part) is None for part in parts)
