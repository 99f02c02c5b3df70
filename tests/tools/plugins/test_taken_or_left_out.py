"""A plugin is loaded, or left out with a reason, without affecting other plugins."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.features import feature
from tools.builtin import BUILTIN_TOOLS
from tools.office.demo_register import DEMO_TOOLS
from tools.office.tools import OFFICE_TOOLS
from tools.sources import (
    OFFICE,
    OFFICE_DEMO,
    SHIPPED_CATEGORIES,
    fill_toolbox,
    start_plugins,
)
from tools.testing import run_tool
from tools.toolbox import Toolbox

LEFT_OUT = {
    "raises": "RuntimeError: the license is missing",
    "silent": "promises_silent.E: <exception str() failed>",
    "exits": "SystemExit: goodbye",
    "unwritten": "SyntaxError: ",
    "needy": "ModuleNotFoundError: No module named 'a_package_that_nobody_has'",
    "empty": "it has no tools",
    "nameless": "AttributeError: module 'promises_nameless' has no attribute 'TOOLS'",
    "module": "expected a list of tools, not module",
    "word": "expected a list of tools, not str",
    "three": "3 is not a tool",
    "abstract": "TypeError: Can't instantiate abstract class Idea",
    "spaced": "the name 'say hello' must look like 'category.toolName'",
    "speechless": "mute.hello has no description for the model",
    "curious": "the parameter 'organization_id' comes from the run (context), never from the model",
    "failing": "OSError: no table",
    "away": "OSError: the register is away",
    "maker": "maker.hello@1.0 exists twice",
    "twofold": "several packages have an entry point of this name: gadget-double, gadget-other",
    "absent": "no installed package has an entry point of this name; available: abstract, again,",
}

pytestmark = pytest.mark.usefixtures("installed")


def test_the_example_plugin_provides_its_tools_with_their_author() -> None:
    (source,), broken = start_plugins(["iban"])
    assert broken == []
    check, country = source.tools()
    assert {(tool.source, tool.author) for tool in source.tools()} == {
        ("iban", "Ledger & Daughters")
    }
    right = run_tool(check, {"number": "DE89 3704 0044 0532 0130 00"})
    assert right.data == {"number": "DE89370400440532013000", "fits": True}
    assert run_tool(check, {"number": "DE98 3704 0044 0532 0130 00"}).data["fits"] is False
    country.start()
    assert run_tool(country, {"number": "nl"}).data == {"country": "Netherlands", "length": 18}
    assert source.tool("iban.findCountry") is country


@feature(
    "Plugins",
    "A broken plugin is skipped with its reason, whatever its import raises",
    "tools/sources/plugins.py",
)
@pytest.mark.parametrize(("name", "problem"), LEFT_OUT.items())
def test_a_broken_plugin_is_left_out_with_its_reason_on_one_line(name: str, problem: str) -> None:
    sources, broken = start_plugins(["iban", name, "versions"])
    assert [source.name for source in sources] == ["iban", "versions"]
    assert [each.name for each in broken] == [name]
    assert problem in broken[0].problem
    assert broken[0].problem.isprintable()
    assert len(broken[0].problem) <= 500


def test_only_the_entry_that_is_not_a_tool_is_left_out() -> None:
    (source,), broken = start_plugins(["half"])
    assert (broken, [tool.name for tool in source.tools()]) == ([], ["half.hello"])
    assert source.left_out == ["3 is not a tool; for example: a class that inherits from Tool"]


def test_each_version_keeps_its_own_author() -> None:
    (source,), _ = start_plugins(["versions"])
    assert [(tool.id, tool.author) for tool in source.tools()] == [
        ("versions.hello@1.0", "gadget-promises"),
        ("versions.hello@2.0", "A person"),
    ]


@feature(
    "Plugins", "Names of built-in tools are reserved in every version", "tools/sources/plugins.py"
)
@pytest.mark.parametrize("name", ["shipped", "newer", "borrowed"])
def test_the_name_of_a_shipped_tool_is_reserved_in_every_version(name: str) -> None:
    sources, broken = start_plugins([OFFICE, name, "iban"])
    assert [source.name for source in sources] == [OFFICE, "iban"]
    assert broken[0].problem.startswith("these names are already taken: ")
    assert "data.searchRecords" in broken[0].problem
    toolbox = Toolbox()
    fill_toolbox(toolbox, sources)
    assert len(toolbox.tools()) == len(OFFICE_TOOLS) + 2


@feature(
    "Plugins",
    "Categories of tools that ship are reserved, also without the office",
    "tools/sources/plugins.py",
)
@pytest.mark.parametrize(
    ("name", "category"), [("pushing", "data"), ("uploading", "files"), ("waiting", "schedule")]
)
@pytest.mark.parametrize("before", [[OFFICE], []])
def test_a_category_of_an_office_tool_is_reserved_even_if_the_office_is_not_loaded(
    before: list[str], name: str, category: str
) -> None:
    sources, broken = start_plugins([*before, name, "iban"])
    assert [source.name for source in sources] == [*before, "iban"]
    assert broken[0].problem == f"these categories are for Gadget's own tools: {category}"


def test_reserved_categories_are_exactly_the_categories_of_shipped_tools() -> None:
    shipped = (*BUILTIN_TOOLS, *OFFICE_TOOLS, *DEMO_TOOLS)
    assert {tool.name.partition(".")[0] for tool in shipped} == SHIPPED_CATEGORIES


def test_the_office_is_a_plugin_whose_tools_are_built_in() -> None:
    (office, iban), _ = start_plugins([OFFICE, "iban"])
    assert [type(tool) for tool in office.tools()] == list(OFFICE_TOOLS)
    assert {(tool.source, tool.author) for tool in office.tools()} == {("built in", "Gadget")}
    assert {tool.source for tool in iban.tools()} == {"iban"}


def test_the_demos_office_is_a_separate_plugin() -> None:
    (demo,), broken = start_plugins([OFFICE_DEMO])
    assert broken == []
    assert [type(tool) for tool in demo.tools()] == list(DEMO_TOOLS)
    assert {(tool.source, tool.author) for tool in demo.tools()} == {("the demo", "Gadget")}


@pytest.mark.parametrize("other", ["again", "holding"])
def test_only_the_first_of_two_plugins_with_the_same_tool_name_is_loaded(other: str) -> None:
    for names in (["fine", other], [other, "fine"]):
        sources, broken = start_plugins(names)
        assert [source.name for source in sources] == names[:1]
        assert broken[0].problem == "these names are already taken: fine.hello"


def test_a_plugin_listed_twice_is_loaded_once() -> None:
    sources, broken = start_plugins(["iban", "fine", "iban"])
    assert [source.name for source in sources] == ["iban", "fine"]
    assert broken == []


def test_a_started_source_stays_unchanged_until_its_shutdown() -> None:
    (source,), _ = start_plugins(["versions"])
    before = source.tools()
    source.start()
    assert source.tools() == before
    source.shutdown()
    assert source.tools() == []
    source.start()
    assert [tool.id for tool in source.tools()] == [tool.id for tool in before]


def test_only_plugins_listed_in_the_settings_are_imported(installed: Path) -> None:
    sources, broken = start_plugins([])
    assert (sources, broken) == ([], [])
