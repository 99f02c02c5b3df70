"""With the office switched off, employees do not have its tools, but pages still show, import and
export its data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import StreamingHttpResponse
from django.test import Client

from agents.employees import toolboxes
from agents.runs.models import CallStatus, RunStatus
from tests.features import feature
from tests.workshop import Workshop, again, asking, call, calls, error_code, make_due
from tests.world import World, make_world
from tools.builtin import BUILTIN_TOOLS
from tools.office.demo_register import DEMO_TOOLS
from tools.office.files.changes import write_file
from tools.office.records.models import Record
from tools.office.tools import OFFICE_TOOLS

SHIPPED = {tool.name for tool in (*OFFICE_TOOLS, *DEMO_TOOLS)}


def _list_installed() -> set[str]:
    return {tool.name for tool in toolboxes.get_installed_toolbox().tools()}


@pytest.fixture
def switch_off(settings: Any) -> Callable[[], None]:
    """Return a function that switches the office off for the rest of the test."""
    config = settings.GADGET_CONFIG

    def switch() -> None:
        tools = config.tools.model_copy(update={"office": False})
        settings.GADGET_CONFIG = config.model_copy(update={"tools": tools})

    return switch


def _read(response: Any) -> str:
    if not isinstance(response, StreamingHttpResponse):
        return str(response.content.decode())

    async def join() -> bytes:
        return b"".join([part async for part in response])

    text: str = async_to_sync(join)().decode()
    return text


@feature(
    "Plugins",
    "The office is a plugin of its own; without it no employee has its tools, and its data and pages stay",
    "tools/sources/plugins.py",
)
def test_switching_the_office_off_removes_its_tools_and_keeps_the_built_in_ones(
    switch_off: Any,
) -> None:
    assert _list_installed() >= SHIPPED
    switch_off()
    assert _list_installed().isdisjoint(SHIPPED)
    assert _list_installed() >= {tool.name for tool in BUILTIN_TOOLS}


def test_a_request_for_an_office_tool_is_rejected_as_unknown_and_the_run_ends(
    workshop: Workshop, switch_off: Any
) -> None:
    workshop.play(asking(call("data.searchRecords")))
    switch_off()
    run = workshop.work()
    assert [error_code(each) for each in calls(run)] == ["TOOL_NOT_FOUND"]
    assert run.status == RunStatus.SUCCEEDED


def test_an_approved_write_of_an_office_tool_does_not_start(
    workshop: Workshop, switch_off: Any
) -> None:
    record = workshop.record(name="Acme Corp", status="active")
    workshop.play(
        asking(call("data.updateRecord", record_id=str(record.pk), changes={"status": "inactive"}))
    )
    run = workshop.work()
    card = workshop.card(run)
    workshop.approve(card)
    switch_off()
    workshop.drive(make_due(again(run)))
    record.refresh_from_db()
    assert record.status == "active"
    assert [(each.status, error_code(each)) for each in calls(run)] == [
        (CallStatus.REJECTED, "TOOL_NOT_FOUND")
    ]


@pytest.mark.django_db
def test_the_data_can_still_be_viewed_imported_and_exported(switch_off: Any) -> None:
    world = make_world()
    card = world.card()
    write_file(world.acme.pk, ("notes.txt",), [b"hello"], lambda _: None)
    switch_off()
    client = world.client("admin")
    for path in (
        "/records/",
        f"/records/{world.records[0].pk}/",
        "/records/import/",
        "/drafts/",
        "/files/",
    ):
        assert client.get(path).status_code == 200, path
    for path in ("/approvals/", f"/approvals/{card.pk}/", "/tools/", "/schedules/", "/"):
        assert client.get(path).status_code == 200, path
    _import(client, world)
    assert "Good One" in _read(client.get("/records/export.csv"))
    assert _read(client.get("/files/download/notes.txt")) == "hello"


def _import(client: Client, world: World) -> None:
    file = SimpleUploadedFile("records.csv", b"name,status\nGood One,active\n")
    assert client.post("/records/import/", {"file": file}).status_code == 302
    assert Record.objects.filter(organization=world.acme, name="Good One").exists()
