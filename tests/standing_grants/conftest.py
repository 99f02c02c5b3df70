"""Fixtures for tests of standing grants: those of the engine's tests."""

from tests.tools.connections.conftest import api  # noqa: F401
from tests.workshop.fixtures import (  # noqa: F401
    _django_db_helper,
    commits_do_not_wait_for_the_disk,
    conversation_cache_is_checked,
    model,
    recorder,
    toolbox,
    workshop,
)
