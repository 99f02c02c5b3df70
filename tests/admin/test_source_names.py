"""The names of a connected source's tools begin with the source's name, so it must not be the first
part of an installed tool's name."""

import pytest
from django.test import Client
from pytest_django import Settings

from agents.employees.toolboxes import get_installed_toolbox
from tests.admin.rows import faults
from tests.admin.source_pages import add, values
from tests.world import World

pytestmark = pytest.mark.django_db

ADDRESS = "https://api.example.com"


@pytest.mark.parametrize("name", ["data", "files", "schedule", "demo", "search_google"])
def test_a_shipped_tool_category_is_refused_as_a_source_name_even_if_the_plugin_is_off(
    world: World, admin: Client, settings: Settings, name: str
) -> None:
    settings.GADGET_OFFICE_PLUGINS = []
    refused = admin.post(add(), values(world, name=name, address=ADDRESS))
    assert list(faults(refused)) == ["name"]


def test_the_category_of_a_withheld_tool_is_refused_as_a_source_name(
    world: World, admin: Client, settings: Settings
) -> None:
    # Changing this setting reloads the tools, now and after the test, so `leave_out` affects no
    # other test.
    settings.GADGET_OFFICE_PLUGINS = []
    get_installed_toolbox().leave_out([], {"letters.send": "It is closed today."})
    refused = admin.post(add(), values(world, name="letters", address=ADDRESS))
    assert list(faults(refused)) == ["name"]
