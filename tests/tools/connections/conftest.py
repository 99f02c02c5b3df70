"""The workshop of the engine's tests, and an outside API that describes itself."""

from collections.abc import Iterator

import pytest

from tests.tools.connections.api import Api
from tests.workshop.fixtures import (
    _django_db_helper,
    commits_do_not_wait_for_the_disk,
    model,
    recorder,
    toolbox,
    workshop,
)
from tools.sources.mcp import PROCESS_POOL

__all__ = [
    "_django_db_helper",
    "commits_do_not_wait_for_the_disk",
    "model",
    "recorder",
    "toolbox",
    "workshop",
]


@pytest.fixture
def api() -> Iterator[Api]:
    """An API with contacts, on loopback."""
    with Api() as running:
        yield running


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    yield
    PROCESS_POOL.close_all()
