"""The settings page shows the table in the code, and the environment is read only through that
table."""

import ast
import re

import pytest

from gadget_site.setting import Setting
from gadget_site.settings_table import SETTINGS
from tests.settings_page import PAGE, render
from tests.source_tree import assert_none, product

HANDED_ON = {
    "gadget_site/settings.py": "to the table",
    "gadget_site/management/supervisor.py": "to the processes that it starts",
    "tools/sources/mcp/server_process.py": "a few names to an MCP server that runs here",
    "tools/sources/mcp/tether.py": "to the server that it starts, which got only those names",
}
"""The files that pass the environment on, each with its receiver. They do not read our variables
themselves."""
WAYS = {"environ", "environb", "getenv", "getenvb"}
DEFAULT_OF_A_LIBRARY = re.compile(
    r"os\.environ\.setdefault\('(DJANGO_SETTINGS_MODULE|ASGI_THREADS)', '[\w.]+'\)"
)
"""Matches a statement that sets a default for Django or Daphne, without using the value."""


def test_the_page_contains_the_current_table_of_settings() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == render(page), "`python -m tests.settings_page` writes the table"


def test_a_row_added_to_the_table_appears_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    changed = render(
        page,
        (*SETTINGS, Setting("GADGET_COLOR", str, default="red", example="blue", help="its color")),
    )
    assert changed != page
    assert "| `GADGET_COLOR` | `red` | `blue` | its color |\n<!-- end" in changed


def test_a_page_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="0 places"):
        render("# Settings\n")


def test_every_setting_has_a_unique_name_an_example_and_unless_only_for_tests_a_description() -> (
    None
):
    names = [setting.name for setting in SETTINGS]
    assert len(names) == len(set(names)) > 30
    assert_none(
        [setting.name for setting in SETTINGS if not setting.example], "a setting has an example"
    )
    for_tests = {"GADGET_TIMING_SCALE"}
    assert {setting.name for setting in SETTINGS if not setting.help} == for_tests


def reads_environment(source: ast.Module) -> list[int]:
    """List the lines that read the environment, except for defaults that are set for a library."""
    set_for_others = {
        id(part)
        for node in ast.walk(source)
        if isinstance(node, ast.Expr) and DEFAULT_OF_A_LIBRARY.fullmatch(ast.unparse(node))
        for part in ast.walk(node)
    }
    return [
        node.lineno
        for node in ast.walk(source)
        if (
            isinstance(node, ast.Attribute)
            and node.attr in WAYS
            and ast.unparse(node.value) == "os"
        )
        or (isinstance(node, ast.alias) and node.name in WAYS)
        if id(node) not in set_for_others
    ]


def test_only_the_table_reads_the_environment() -> None:
    readers = {
        module.place: lines for module in product() if (lines := reads_environment(module.tree))
    }
    offences = [
        f"{place}:{line}"
        for place, lines in readers.items()
        if place not in HANDED_ON
        for line in lines
    ]
    offences += [f"{place} needs no entry any more" for place in HANDED_ON.keys() - readers.keys()]
    assert_none(
        sorted(offences), "an environment variable is a row of gadget_site/settings_table.py"
    )


@pytest.mark.parametrize(
    "line",
    [
        "color = os.environ['COLOR']",
        "color = os.environ.get('COLOR')",
        "color = os.getenv('COLOR')",
        "from os import environ",
        "color = os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'gadget_site.settings')",
        "os.environ.setdefault('COLOR', 'red')",
    ],
)
def test_reading_a_variable_elsewhere_is_detected(line: str) -> None:
    assert reads_environment(ast.parse(line)) == [1]


def test_setting_a_default_for_a_library_is_not_treated_as_reading() -> None:
    assert not reads_environment(ast.parse("os.environ.setdefault('ASGI_THREADS', '16')"))
