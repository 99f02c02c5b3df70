"""APIs and MCP servers are sources, and a plugin can add its own kind of source."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

from tests.features import feature
from tests.tools.mcp_servers.http_server import older_server
from tests.tools.plugins.test_combined import Noted, made
from tests.tools.sources.outside import REACH, Outside
from tools.contract import Level, ToolContext, ToolError
from tools.sources import CombinedSource, PluginSource, ToolSource, fill_toolbox
from tools.sources.builtin import BuiltinSource
from tools.sources.mcp import HttpServer, McpSource
from tools.sources.openapi import ApiConnection, DocumentError, OpenAPISource
from tools.sources.plugins import PluginError
from tools.testing import run_tool
from tools.toolbox import Grants, Toolbox

DESCRIPTION = """
openapi: 3.1.0
info: {title: Customers, version: "1"}
paths:
  /customers:
    get: {operationId: listCustomers, summary: List all customers.}
    delete: {operationId: deleteCustomers, summary: Delete all customers.}
    trace: {operationId: traceCustomers, summary: Trace.}
"""


@pytest.fixture
def crm() -> Iterator[Outside]:
    outside = Outside()
    yield outside
    outside.stop()


def bring(monkeypatch: pytest.MonkeyPatch, named: Any) -> PluginSource:
    """Build the source of a plugin whose entry point names this object."""
    module = ModuleType("gadget_own_source")
    module.NAMED = named  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gadget_own_source", module)
    return PluginSource(EntryPoint("own", "gadget_own_source:NAMED", "gadget.tools"))


@feature(
    "Plugins",
    "An API and an MCP server are sources of tools like any other, with levels that their owner sets",
    "tools/sources/openapi/source.py, tools/sources/mcp/source.py",
)
def test_an_api_can_be_a_source(crm: Outside) -> None:
    levels = {"crm.deleteCustomers": Level.WRITE}
    source = OpenAPISource(ApiConnection("crm", crm.url), lambda: DESCRIPTION, levels)
    assert isinstance(source, ToolSource)
    assert source.tools() == []
    source.start()
    before = source.tools()
    assert {tool.name: tool.level for tool in before} == {
        "crm.listCustomers": Level.READ,
        "crm.deleteCustomers": Level.WRITE,
    }
    assert len(source.left_out) == 1
    assert "/customers" in source.left_out[0]
    tool = source.tool("crm.listCustomers")
    assert tool is not None
    assert run_tool(tool, reach=REACH).data == {"ok": True}
    assert source.tool("crm.other") is None
    source.start()
    assert source.tools() == before
    source.shutdown()
    assert source.tools() == []


def test_an_api_source_with_an_invalid_description_does_not_start(crm: Outside) -> None:
    with pytest.raises(DocumentError):
        OpenAPISource(ApiConnection("crm", crm.url), lambda: "nothing").start()


def test_tools_of_an_mcp_server_are_destructive_unless_levels_are_given() -> None:
    with older_server() as older:
        server = HttpServer(older.url("works"), {}, REACH)
        source = McpSource("files", server)
        assert isinstance(source, ToolSource)
        source.start()
        (tool,) = source.tools()
        assert (tool.level, source.tool(tool.name)) == (Level.DESTRUCTIVE, tool)
        known = McpSource("files", server, {tool.name: Level.READ})
        known.start()
        assert [each.level for each in known.tools()] == [Level.READ]
        known.shutdown()
        assert known.tools() == []


def test_an_mcp_source_does_not_start_if_its_server_does_not_respond() -> None:
    with pytest.raises(ToolError):
        McpSource("files", HttpServer("http://127.0.0.1:1/mcp", {}, REACH)).start()


@feature(
    "Plugins", "A plugin can bring a source of its own, such as an API", "tools/sources/plugins.py"
)
@pytest.mark.parametrize("form", ["instance", "function"])
def test_a_plugin_can_provide_an_api(
    crm: Outside, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    api = OpenAPISource(ApiConnection("crm", crm.url), lambda: DESCRIPTION)
    plugin = bring(monkeypatch, api if form == "instance" else lambda: api)
    toolbox = Toolbox()
    fill_toolbox(toolbox, [BuiltinSource([]), plugin])
    tool = toolbox.get_tool("crm.listCustomers")
    assert tool is not None
    assert tool.source == "own"
    assert any("/customers" in sentence for sentence in toolbox.left_out)
    assert run_tool(tool, reach=REACH).data == {"ok": True}
    toolbox.shutdown()
    assert api.tools() == plugin.tools() == []


def test_a_plugin_can_provide_a_source_class(monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(BuiltinSource):
        def __init__(self) -> None:
            super().__init__([made("own.hello")], "mine")

    plugin = bring(monkeypatch, Own)
    plugin.start()
    assert [(tool.id, tool.source) for tool in plugin.tools()] == [("own.hello@1.0", "own")]


@pytest.mark.parametrize(
    ("tools", "fails_to", "error"),
    [
        (["own.hello"], "start", OSError),
        ([], "", PluginError),
        (["own.hello", "own.hello"], "", ValueError),
    ],
)
def test_an_unusable_source_is_shut_down_and_breaks_its_plugin(
    monkeypatch: pytest.MonkeyPatch, tools: list[str], fails_to: str, error: type[Exception]
) -> None:
    diary: list[str] = []
    plugin = bring(monkeypatch, Noted("mine", *map(made, tools), diary=diary, fails_to=fails_to))
    with pytest.raises(error):
        plugin.start()
    assert diary == ["start mine", "shutdown mine"]
    assert plugin.tools() == []


def test_later_tools_with_the_same_name_are_left_out() -> None:
    first, second = made("mail.send"), made("mail.send", "2.0")
    source = CombinedSource(
        [BuiltinSource([first], "first"), BuiltinSource([second, made("mail.find")], "second")],
        by_precedence=True,
    )
    source.start()
    assert [tool.id for tool in source.tools()] == ["mail.send@1.0", "mail.find@1.0"]
    assert source.tool("mail.send") is first
    assert source.left_out == ["mail.send of 'second' is left out: 'first' already provides it"]


class Withholding(BuiltinSource):
    """A source with one tool that works, and one that cannot be used now."""

    def __init__(self, *names: str) -> None:
        super().__init__([made(name) for name in names or ["own.hello"]], "mine")
        self.withheld = {"own.goodbye": "own.goodbye cannot be used:\nthe door is open."}


@feature(
    "Plugins",
    "A call of a tool that a plugin's source withholds gets the reason",
    "tools/sources/plugins.py",
)
def test_a_granted_call_of_a_withheld_tool_gets_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    toolbox = Toolbox()
    fill_toolbox(toolbox, [bring(monkeypatch, Withholding)])
    wider = toolbox.with_hosts(frozenset())
    assert [tool.name for tool in wider.tools()] == ["own.hello"]
    told = []
    for granted in ({"own.goodbye"}, set[str]()):
        error = wider.execute_tool_by_name(
            "own.goodbye", {}, ToolContext(1), Grants(frozenset(granted))
        ).error
        assert error is not None
        told.append(error.message)
    assert told == [
        "own.goodbye cannot be used: the door is open.",
        "There is no tool 'own.goodbye'.",
    ]


@pytest.mark.parametrize(
    ("listed", "taken", "problem"),
    [
        (["own.hello"], "own.goodbye", "these names are already taken: own.goodbye"),
        (["own hello"], "", ""),
    ],
)
def test_a_withheld_name_is_listed_as_a_name_of_the_plugin(
    monkeypatch: pytest.MonkeyPatch, listed: list[str], taken: str, problem: str
) -> None:
    bring(monkeypatch, lambda: Withholding(*listed))
    plugin = PluginSource(EntryPoint("own", "gadget_own_source:NAMED", "gadget.tools"), {taken})
    if problem:
        with pytest.raises(PluginError, match=problem):
            plugin.start()
    else:
        plugin.start()
        assert (plugin.tools(), list(plugin.withheld), len(plugin.left_out)) == (
            [],
            ["own.goodbye"],
            1,
        )


def test_the_name_of_a_withheld_tool_is_not_available_to_other_sources() -> None:
    sources = [Withholding(), BuiltinSource([made("own.goodbye")], "second")]
    with pytest.raises(ValueError, match=r"own\.goodbye comes from both 'mine' and 'second'"):
        CombinedSource(sources).start()
    for order in (sources, sources[::-1]):
        source = CombinedSource(order, by_precedence=True)
        source.start()
        is_withheld = order[0].name == "mine"
        assert (source.tool("own.goodbye") is None) is is_withheld
        assert ("own.goodbye" in source.withheld) is is_withheld
        assert len(source.left_out) == 1


def test_a_failing_shutdown_of_a_source_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    diary: list[str] = []
    toolbox = Toolbox()
    fill_toolbox(toolbox, [Noted("mine", made("own.hello"), diary=diary, fails_to="shutdown")])
    toolbox.shutdown()
    assert diary == ["start mine", "shutdown mine"]
    assert "mine cannot shutdown" in caplog.text
