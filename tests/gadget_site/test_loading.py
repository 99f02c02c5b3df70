"""The modules that a process loads before it is ready, and the state of its garbage collector."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from django.conf import settings

import tools.sources.mcp

STARTED = """
import django
django.setup()
import gadget_site.celery, agents.worker.jobs, gadget_site.urls
import gc, json, sys
print(json.dumps({"collects": gc.isenabled(), "frozen": gc.get_freeze_count(), "loaded": sorted(sys.modules)}))
"""


@pytest.fixture(scope="module")
def started() -> dict[str, object]:
    """Start a process that loads the same modules as web and workers; return its loaded modules and
    the state of its garbage collector."""
    command = [sys.executable, "-c", STARTED]
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "gadget_site.settings"}
    done = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=True
    )
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_rarely_used_modules_are_not_loaded(started: dict[str, object]) -> None:
    loaded = started["loaded"]
    assert isinstance(loaded, list)
    assert {"tools.sources.mcp", "agents.runs.models", "celery"} <= set(loaded)
    assert not {"mcp", "tools.sources.mcp.tool", "daphne.server", "autobahn"} & set(loaded)


def test_garbage_collection_ignores_everything_loaded_at_startup(
    started: dict[str, object],
) -> None:
    assert started["collects"] is True
    assert isinstance(started["frozen"], int)
    assert started["frozen"] > 10_000


@pytest.mark.parametrize("name", tools.sources.mcp.__all__)
def test_each_name_of_the_mcp_package_can_be_loaded_on_demand(name: str) -> None:
    assert getattr(tools.sources.mcp, name) is not None


def test_an_unknown_name_of_the_mcp_package_raises_an_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = tools.sources.mcp.nothing
