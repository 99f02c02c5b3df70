"""What the pages under docs/ show works as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tools.config import ToolSettings, read_config

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
GUIDES = [
    "write-a-tool.md",
    "test-a-tool.md",
    "permissions.md",
    "connect-an-api.md",
    "connect-an-mcp-server.md",
]


def blocks(page: str, language: str) -> list[str]:
    """The texts of all code blocks of this language."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return found


@pytest.mark.parametrize("page", GUIDES)
def test_the_code_of_a_guide_runs_from_top_to_bottom(page: str) -> None:
    code = blocks(page, "python")
    assert any("assert " in block for block in code)
    names: dict[str, Any] = {"__name__": "guide"}
    for block in code:
        exec(compile(block, page, "exec"), names)


def test_the_settings_that_are_shown_are_all_that_there_are() -> None:
    (text,) = blocks("settings.md", "yaml")
    names = re.findall(r"\$\{(\w+)\}", text)
    config = read_config(text, dict.fromkeys(names, "a-value"))
    assert set(config.tools.model_fields_set) == set(ToolSettings.model_fields)
    assert set(config.services) == {"google.cse", "github"}
    shown = config.tools.model_dump(exclude={"disabled", "features_by_tool"})
    assert shown == ToolSettings().model_dump(exclude={"disabled", "features_by_tool"}), "the defaults are shown"


def test_every_feature_names_a_file_and_a_test_that_exist() -> None:
    rows = re.findall(r"^\| (.+) \| ([\w/.]+\.py) \| ([\w/.:]+) \|$", (DOCS / "features.md").read_text(), re.MULTILINE)
    assert len(rows) > 50
    for feature, file, test in rows:
        path, _, function = test.partition("::")
        assert (DOCS.parent / file).is_file(), f"{feature}: {file}"
        assert f"def {function or 'test_'}" in (DOCS.parent / path).read_text(), f"{feature}: {test}"
