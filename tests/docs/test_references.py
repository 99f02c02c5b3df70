"""Everything that the pages name exists: files, tests, names in the code, and the layers of the
architecture."""

import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import PAGES
from tests.source_tree import ROOT, assert_none
from tests.test_architecture import FLOORS

FOLDERS = ("agents", "deploy", "docs", "gadget_site", "static", "templates", "tests", "tools")
SHORT_FOR = {"engine.md": ("agents/runs/engine", "agents")}
"""Folders that a page omits from its paths."""
FOREIGN = frozenset(
    {
        "ChatCompletionStreamState",
        "CursorPagination",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "gadget_model_seconds_total",
        "gadget_tool_cost_total",
        "group_left",
        "pg_dump",
        "purgeCache",
    }
)
"""Names of libraries, examples and Prometheus, which do not occur in the project's files."""
CODE_NAME = re.compile(
    r"(?<!\w)(?:[A-Za-z]+_\w*[a-zA-Z0-9]|[a-z]+[A-Z]\w+|[A-Z][a-z]+[A-Z]\w+)(?!\w)"
)


def find_quoted(page: Path) -> list[str]:
    """Find the texts in backquotes outside code blocks."""
    text = re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    return re.findall(r"`([^`\n]+)`", text)


def is_missing(reference: str, folders: tuple[str, ...] = ()) -> bool:
    """Return True if there is no such file or folder, or no such test in it."""
    path, _, name = reference.partition("::")
    found = [
        place
        for place in (ROOT / path, *(ROOT / folder / path for folder in folders))
        if place.exists()
    ]
    return not found or (bool(name) and f"def {name}(" not in found[0].read_text(encoding="utf-8"))


@cache
def read_code_words() -> frozenset[str]:
    """Read every word of the project's code, templates, scripts and settings."""
    files = [
        path
        for folder in FOLDERS
        if folder != "docs"
        for path in (ROOT / folder).rglob("*")
        if "node_modules" not in path.parts
    ]
    texts = [
        path.read_text(encoding="utf-8", errors="replace")
        for path in (*files, ROOT / "Makefile", ROOT / "pyproject.toml")
        if path.is_file() and path.suffix not in {".pyc", ".png"} and path != Path(__file__)
    ]
    return frozenset(word for text in texts for word in re.findall(r"\w+", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_named_path_exists(page: Path) -> None:
    folders = SHORT_FOR.get(page.name, ())
    paths = [text for text in find_quoted(page) if re.fullmatch(r"[\w./-]+(::\w+)?", text)]
    ours = [path for path in paths if path.partition("/")[0] in FOLDERS and "/" in path]
    short = [path for path in paths if folders and path.endswith(".py") and path not in ours]
    assert_none(
        sorted({path for path in (*ours, *short) if is_missing(path, folders)}),
        "a path leads to a file",
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_name_in_backquotes_exists_in_the_code(page: Path) -> None:
    names = {
        name for text in find_quoted(page) if "/" not in text for name in CODE_NAME.findall(text)
    }
    assert_none(
        sorted(names - FOREIGN - read_code_words()), "a name in backquotes is a name of the code"
    )


def test_a_wrong_path_or_test_is_detected() -> None:
    assert is_missing("agents/nowhere.py")
    assert is_missing("tests/docs/test_references.py::test_nothing")
    assert not is_missing("tests/docs/test_references.py::test_a_wrong_path_or_test_is_detected")
    assert not is_missing("loop.py", SHORT_FOR["engine.md"])


@pytest.mark.parametrize("top", FLOORS)
def test_the_architecture_page_lists_the_actual_layers(top: str) -> None:
    page = (ROOT / "docs" / "internals" / "architecture.md").read_text(encoding="utf-8")
    (section,) = re.findall(rf"^## {top}:.*?(?=^## )", page, flags=re.MULTILINE | re.DOTALL)
    table = section.split("\n\n| ")[1]  # the first table
    rows = re.findall(r"^\| (`.+?) \|", table, flags=re.MULTILINE)
    assert [tuple(re.findall(r"`([^`]+)`", row)) for row in rows] == list(FLOORS[top])
