"""Tests of standing grants on the engine's fixtures."""

from collections.abc import Iterator

import pytest

from tests.tools.connections.api import Api
from tests.workshop.fixtures import (
    _django_db_helper,
    commits_do_not_wait_for_the_disk,
    conversation_cache_is_checked,
    model,
    recorder,
    toolbox,
    workshop,
)

__all__ = [
    "_django_db_helper",
    "commits_do_not_wait_for_the_disk",
    "conversation_cache_is_checked",
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
