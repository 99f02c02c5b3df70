"""The connection to a local program is tested by a worker, and the page waits for the result."""

from __future__ import annotations

import sys

import pytest
from django.test import Client

from agents.employees import sources
from tests.admin.rows import address
from tests.admin.source_pages import text_of
from tests.admin.test_sources import world
from tests.features import feature
from tests.world import World
from tools.connections.models import Source, SourceKind, SourceTool

__all__ = ["world"]

pytestmark = pytest.mark.django_db

CLOCK = [sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"]


@pytest.fixture
def root(world: World) -> Client:
    return world.client("root")


def connect(world: World, command: list[str]) -> Source:
    values = {"kind": SourceKind.MCP_STDIO, "name": "clock", "command": command}
    return Source.objects.create(organization=world.acme, **values)


def to_test(source: Source) -> str:
    return f"/admin/connections/source/{source.pk}/test/"


@feature(
    "Connected sources", "A worker tests a program while the page waits", "agents/admin/sources.py"
)
def test_a_working_program_is_reported_with_its_number_of_tools(world: World, root: Client) -> None:
    source = connect(world, CLOCK)
    assert f'action="{to_test(source)}"' in text_of(root.get(address(source, "change")))
    response = root.post(to_test(source))
    waiting = root.get(response["Location"])
    assert "A worker is testing the connection" in text_of(waiting)
    assert waiting["Refresh"]
    assert not SourceTool.objects.exists(), "the program is not run by the page"
    sources.refresh_source_by_id(source.pk)  # as the worker does
    page = root.get(response["Location"])
    assert "Connection to clock works. 2 tools found." in text_of(page)
    assert "Refresh" not in page


def test_a_failing_program_is_reported_with_the_reason(world: World, root: Client) -> None:
    source = connect(world, [sys.executable, "-c", "raise SystemExit('no such clock')"])
    response = root.post(to_test(source))
    sources.refresh_source_by_id(source.pk)
    page = text_of(root.get(response["Location"]))
    assert "Connection failed" in page
    assert "no such clock" in page
    assert "works." not in page


def test_a_switched_off_program_is_not_started(world: World, root: Client) -> None:
    source = connect(world, CLOCK)
    Source.objects.update(is_active=False)
    response = root.post(to_test(source), follow=True)
    assert "clock is off." in text_of(response)
    source.refresh_from_db()
    assert source.checked_at is None
