"""An organization's connected API and MCP server behave like the sources of plugins."""

from __future__ import annotations

import pytest

from agents.employees.toolboxes import get_installed_toolbox, load_toolbox
from tests.features import feature
from tests.tools.connections.api import Api
from tests.tools.connections.connecting import (
    TIME_SERVER,
    connect_api,
    connect_program,
    offer,
    row_of,
)
from tests.tools.plugins.test_combined import made
from tests.workshop import Workshop
from tools.connections.changes import bump_tools_version
from tools.connections.connected_tools import ConnectedSource, load_connected_sources
from tools.connections.models import SourceTool
from tools.contract import Level, NetworkAccess, Tool
from tools.sources import CombinedSource, ToolSource
from tools.sources.mcp import PROCESS_POOL, McpTool
from tools.sources.openapi import OpenAPITool

pytestmark = pytest.mark.django_db(transaction=True)

LIST, ADD, NOW = "crm.listContacts", "crm.addContact", "time.get_current_time"


@pytest.fixture
def sources(workshop: Workshop, api: Api) -> list[ConnectedSource]:
    """An API with one tool in quarantine and one that works, and an MCP program. The returned
    sources have not contacted them."""
    api_source = connect_api(workshop, api)
    offer(workshop, api_source, LIST, ADD)
    SourceTool.objects.filter(pk=row_of(api_source, ADD).pk).update(hash="changed")
    offer(workshop, connect_program(workshop, TIME_SERVER), NOW, level=Level.READ)
    bump_tools_version(workshop.organization.pk)
    PROCESS_POOL.close_all()
    return list(load_connected_sources(workshop.organization.pk, {}, NetworkAccess()))


@feature(
    "Connected sources",
    "A connected API and a connected MCP server are sources of tools like those of a plugin",
    "tools/connections/connected_tools.py, tools/sources/base.py",
)
def test_each_connected_source_can_start_twice_without_contacting_its_server(
    sources: list[ConnectedSource], api: Api
) -> None:
    assert [source.name for source in sources] == ["crm", "time"]
    kinds: tuple[type[Tool], ...] = (OpenAPITool, McpTool)
    for _ in range(2):
        for source, name, kind in zip(sources, (LIST, NOW), kinds, strict=True):
            assert isinstance(source, ToolSource)
            assert source.tools() == []
            source.start()
            tool = source.tool(name)
            assert isinstance(tool, kind)
            assert source.tools() == [tool]
            source.shutdown()
    assert sources[0].withheld == {
        ADD: f"“{ADD}” cannot be used: “crm” has changed its definition, and an admin must accept it."
    }
    assert api.received == []


def test_connected_sources_can_be_combined(sources: list[ConnectedSource]) -> None:
    combined = CombinedSource(sources)
    combined.start()
    assert [tool.name for tool in combined.tools()] == [LIST, NOW]
    assert set(combined.withheld) == {ADD}


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_connected_tool_does_not_replace_an_installed_tool_of_the_same_name(
    workshop: Workshop,
    sources: list[ConnectedSource],
    version: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Stand-ins for the tools of a plugin that was installed after the source.
    installed = [
        made(LIST, version),
        made(ADD, version),
    ]
    toolbox = get_installed_toolbox()
    toolbox.register_all(installed)
    try:
        workshop.organization.refresh_from_db()
        loaded = load_toolbox(workshop.organization.pk)
    finally:
        for tool in installed:
            toolbox.unregister(tool.name)
    assert [loaded.get_tool(name) for name in (LIST, ADD)] == installed
    assert loaded.get_tool(NOW) is not None
    assert loaded.left_out[-2:] == tuple(
        f"{name} of 'crm' is left out: 'the installation' already provides it"
        for name in (LIST, ADD)
    )
    assert f"{LIST} of 'crm' is left out" in caplog.text
