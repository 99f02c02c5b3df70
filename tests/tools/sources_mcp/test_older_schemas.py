"""An older schema with an illegal keyword of a newer revision never hides other tools."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.sources_mcp.test_definitions import described, read


@pytest.mark.parametrize(
    "more",
    [
        {"dependencies": {"a": ["b"]}, "dependentRequired": 5},
        {"dependencies": {"a": {}}, "dependentSchemas": [1]},
        {"properties": {"a": {"required": True}}, "required": [[1]]},
    ],
    ids=["required", "schemas", "names"],
)
def test_an_older_keyword_beside_an_illegal_newer_keyword_does_not_hide_tools(
    more: dict[str, Any],
) -> None:
    definitions, skipped = read(described("first"), described(schema={"type": "object", **more}))
    assert ([each.name for each in definitions], skipped) == (["first", "save"], [])
