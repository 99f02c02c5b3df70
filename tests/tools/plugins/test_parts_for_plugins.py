"""The page about plugins lists the parts of the contract that no shipped tool uses, each with its
test."""

from __future__ import annotations

import inspect
import re

from tests.source_tree import ROOT, modules
from tools.builtin import BUILTIN_TOOLS
from tools.contract import Recipe, Tool
from tools.office.tools import OFFICE_TOOLS

SHIPPED = (*BUILTIN_TOOLS, *OFFICE_TOOLS)
ATTRIBUTES = (
    "cacheable_s", "capabilities", "features", "idempotent", "open_world", "rate_limit", "returns_outside_text",
    "suspends", "transactional", "volatile",
)  # fmt: skip


def _read_table() -> dict[str, str]:
    """Return each part in the table with the test that shows it."""
    page = (ROOT / "docs" / "write-a-plugin.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"^## For plugins$(.*?)^## ", page, flags=re.MULTILINE | re.DOTALL)
    return dict(
        re.findall(r"^\| `([^`]+)` \|.*\| `(tests/[^`]+)` \|$", section, flags=re.MULTILINE)
    )


def _list_unused() -> set[str]:
    """Return the parts that no shipped tool uses."""
    unused = {
        name
        for name in ATTRIBUTES
        if all(getattr(tool, name) == getattr(Tool, name) for tool in SHIPPED)
    }
    if not any(issubclass(tool, Recipe) for tool in SHIPPED):
        unused.add("Recipe")
    if all(inspect.isclass(tool) for tool in SHIPPED):
        unused.add("@tool")
    own = {tool.__module__ for tool in SHIPPED}
    if not any(".call_tool(" in module.text for module in modules() if module.name in own):
        unused.add("call_tool")
    return unused


def test_the_list_of_parts_for_plugins_has_exactly_the_unused_parts() -> None:
    assert _read_table().keys() == _list_unused()


def test_each_part_for_plugins_is_shown_by_a_test_that_names_it() -> None:
    for part, path in _read_table().items():
        text = (ROOT / path).read_text(encoding="utf-8")
        assert "def test_" in text
        assert part in text, f"{path} does not use {part}"
