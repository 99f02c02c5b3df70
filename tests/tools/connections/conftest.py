"""Fixtures for tests of connected sources: those of the engine's tests, and an outside API that
describes itself."""

from collections.abc import Iterator

import pytest

from tests.tools.connections.api import Api
from tests.tools.sources_mcp.conftest import no_process_is_left  # noqa: F401
from tests.workshop.fixtures import (  # noqa: F401
    _django_db_helper,
    commits_do_not_wait_for_the_disk,
    lines,
    model,
    recorder,
    toolbox,
    workshop,
)


@pytest.fixture
def api() -> Iterator[Api]:
    """An API with contacts, on loopback."""
    with Api() as running:
        yield running
