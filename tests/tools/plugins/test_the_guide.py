"""The guide to plugins shows the example package's actual files, and the test in the guide passes
with the installed package."""

from __future__ import annotations

from typing import Any

import pytest

from tests.docs.test_guides import blocks
from tests.features import feature
from tests.tools.plugins.packages import EXAMPLE

GUIDE = "write-a-plugin.md"


@feature("Plugins", "The guide shows the package that is tested", "tools/sources/plugins.py")
@pytest.mark.parametrize(
    ("language", "file"),
    [
        ("toml", "pyproject.toml"),
        ("python", "gadget_iban/__init__.py"),
        ("csv", "gadget_iban/countries.csv"),
    ],
)
def test_the_guide_shows_the_whole_package(language: str, file: str) -> None:
    assert blocks(GUIDE, language)[0] == (EXAMPLE / file).read_text(encoding="utf-8")


def test_the_package_contains_only_the_files_in_the_guide() -> None:
    found = {path.relative_to(EXAMPLE).as_posix() for path in EXAMPLE.rglob("*") if path.is_file()}
    assert {path for path in found if "__pycache__" not in path} == {
        "pyproject.toml",
        "gadget_iban/__init__.py",
        "gadget_iban/countries.csv",
    }


@pytest.mark.usefixtures("installed")
def test_the_test_in_the_guide_passes_with_the_installed_package() -> None:
    _, code, _ = blocks(GUIDE, "python")
    assert code.count("assert ") == 4
    names: dict[str, Any] = {"__name__": "guide"}
    exec(compile(code, GUIDE, "exec"), names)
    assert ".venv" not in names["check_iban"].function.__code__.co_filename
    assert str(EXAMPLE) not in names["check_iban"].function.__code__.co_filename
