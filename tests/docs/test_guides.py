"""What the pages under docs/ show works as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.config import ToolSettings, read_config

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
EXAMPLE = DOCS.parent / "tests" / "tools" / "plugins" / "example_package"
"""The guide to plugins shows this package, and runs its test in the package's folder."""
PAGES_WITH_CODE = [
    "../README.md",
    "write-a-tool.md",
    "test-a-tool.md",
    "permissions.md",
    "standing-grants.md",
    "approval-rules.md",
    "provenance.md",
    "connect-an-api.md",
    "connect-an-mcp-server.md",
    "connect-an-agent.md",
    "write-a-plugin.md",
]
SERVERS = ["webhooks.md"]
"""Pages whose code runs until it is stopped; a test of its own follows each."""


def blocks(page: str, language: str) -> list[str]:
    """The texts of all code blocks of this language."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return found


@pytest.mark.parametrize("page", PAGES_WITH_CODE)
def test_the_code_of_a_page_runs_as_a_plain_script(page: str, tmp_path: Path) -> None:
    code = "\n\n".join(blocks(page, "python"))
    assert "assert " in code
    script = tmp_path / "copied.py"
    script.write_text(code, encoding="utf-8")
    folders = os.pathsep.join([str(DOCS.parent), str(EXAMPLE)])
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": folders}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_page_with_code_is_left_out() -> None:
    found = {page.name for page in DOCS.glob("*.md") if "```python" in page.read_text(encoding="utf-8")}
    assert {"../README.md", *found} == {*PAGES_WITH_CODE, *SERVERS}


def test_the_settings_that_are_shown_are_all_that_there_are() -> None:
    (text,) = blocks("settings.md", "yaml")
    names = re.findall(r"\$\{(\w+)\}", text)
    config = read_config(text, dict.fromkeys(names, "a-value"))
    assert set(config.tools.model_fields_set) == set(ToolSettings.model_fields)
    assert set(config.services) == {"google.cse", "github"}
    shown = config.tools.model_dump(exclude={"disabled", "features_by_tool"})
    assert shown == ToolSettings().model_dump(exclude={"disabled", "features_by_tool"}), "the defaults are shown"
