"""The README's examples work: its code runs, its commands and settings exist, and its links lead to
files."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import get_commands

from gadget_site.demo.staff import DATA_STEWARD, OFFICE_MANAGER, ON_A_REAL_MODEL, SECURITY_TESTER
from tests.docs.pages import PAGES
from tools.contract import Level, Tool
from tools.toolbox import Toolbox

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Return the texts of all code blocks in this language."""
    found: list[str] = re.findall(
        rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL
    )
    return found


def test_the_tool_and_its_test_run_as_printed() -> None:
    names: dict[str, Any] = {"__name__": "readme"}
    code = blocks("python")
    assert len(code) == 2
    for block in code:
        exec(compile(block, "README.md", "exec"), names)
    tool = names["WorkingDays"]()
    assert isinstance(tool, Tool)
    assert tool.level == Level.READ
    toolbox = Toolbox()
    toolbox.register(tool)
    assert toolbox.get_tool("dates.workingDays") is tool


def test_the_tool_has_at_most_twenty_lines() -> None:
    body = blocks("python")[0].partition("class WorkingDays")[2]
    assert len(body.splitlines()) <= 20


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_named_command_exists(page: Path) -> None:
    for command in re.findall(r"manage\.py (\w+)", page.read_text(encoding="utf-8")):
        assert command in get_commands(), command


def test_every_named_make_target_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"\bmake (run|test|\w+)`", README):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_the_readme_names_the_demos_employees_and_their_first_example_tasks() -> None:
    words = " ".join(README.split())
    for worker in (DATA_STEWARD, OFFICE_MANAGER, SECURITY_TESTER):
        assert f"*{worker.name}, {worker.job_title}*" in words
        assert worker.example_tasks[0] in words
    assert f"*{ON_A_REAL_MODEL.name}*" in words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target
