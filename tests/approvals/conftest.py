"""The engine's fixtures, for the tests of approvals."""

import pytest

from tests.workshop import Workshop
from tests.workshop.fixtures import (  # noqa: F401
    _django_db_helper,
    commits_do_not_wait_for_the_disk,
    conversation_cache_is_checked,
    model,
    recorder,
    toolbox,
    workshop,
)
from tests.world import World, make_world
from tools.office.records.models import Record


@pytest.fixture
def world() -> World:
    return make_world()


@pytest.fixture
def record(workshop: Workshop) -> Record:  # noqa: F811
    return workshop.record(name="Acme")
