"""The page about plugins lists the parts of the contract that shipped tools do not use, each with
its test."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import fields

from tests.source_tree import ROOT, modules
from tools.builtin import BUILTIN_TOOLS
from tools.contract import Recipe, Services, Tool, ToolContext, ToolResult
from tools.office.tools import OFFICE_TOOLS

SHIPPED = (*BUILTIN_TOOLS, *OFFICE_TOOLS)
SET_BY_GADGET = {"source", "level", "load_params", "do_not_call_in_templates"}
"""Parts that Gadget sets or calls itself; `level` is the context's, not the tool's."""


def _read_table() -> dict[str, str]:
    """Return the test for each part in the guide's table."""
    page = (ROOT / "docs" / "write-a-plugin.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"^## For plugins$(.*?)^## ", page, flags=re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| (`[^|]+`) \|.*\| `(tests/[^`]+)` \|$", section, flags=re.MULTILINE)
    return {part: test for parts, test in rows for part in re.findall("`([^`]+)`", parts)}


def _list_parts(of: type) -> list[str]:
    """Return the public names that the class defines, without properties and other computed
    attributes."""
    return [
        name
        for name, value in vars(of).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or not hasattr(type(value), "__get__"))
    ]


def _list_unused_attributes() -> set[str]:
    unused = {
        name
        for name in _list_parts(Tool)
        if all(getattr(tool, name) == getattr(Tool, name) for tool in SHIPPED)
    }
    if not any(tool.modes for tool in SHIPPED):
        unused.add("modes")
    if not any(issubclass(tool, Recipe) for tool in SHIPPED):
        unused.add("Recipe")
    if all(inspect.isclass(tool) for tool in SHIPPED):
        unused.add("@tool")
    if not any(inspect.iscoroutinefunction(tool.execute) for tool in SHIPPED):
        unused.add("async def")
    return unused


def _list_unused_in_calls() -> set[str]:
    """Return the parts of contexts and results that the code of shipped tools does not name."""
    own = [each for each in modules() if each.name.startswith(("tools.office.", "tools.builtin."))]
    text = "\n".join(module.text for module in own)
    services = {name for name in dir(Services) if not name.startswith("_")}
    unused = {f"services.{name}" for name in services if f".services.{name}" not in text}
    context = {field.name for field in fields(ToolContext)}
    unused |= {name for name in context if f"context.{name}" not in text}
    named = {name for module in own for name in _list_result_parts(module.tree)}
    result = inspect.signature(ToolResult.ok).parameters.values()
    in_order = {each.name for each in result if each.kind is each.POSITIONAL_OR_KEYWORD}
    if not named - {each.name for each in result}:
        unused.add("metadata")
    return unused | {
        each.name for each in result if each.name not in named | in_order | {"metadata"}
    }


def _list_result_parts(tree: ast.AST) -> list[str | None]:
    """Return the names of the arguments with which the code calls `ToolResult.ok`."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    made = [call for call in calls if ast.unparse(call.func) == "ToolResult.ok"]
    return [each.arg for call in made for each in call.keywords]


def test_the_list_of_parts_for_plugins_has_exactly_the_unused_parts() -> None:
    unused = _list_unused_attributes() | _list_unused_in_calls()
    assert _read_table().keys() == unused - SET_BY_GADGET


def test_each_part_for_plugins_is_shown_by_a_test_that_names_it() -> None:
    for part, path in _read_table().items():
        text = (ROOT / path).read_text(encoding="utf-8")
        assert "def test_" in text
        assert re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text), f"{path} does not use {part}"
