"""The organizations for the tests of pages."""

from __future__ import annotations

import pytest

from tests.world import World, make_world


@pytest.fixture
def world() -> World:
    return make_world()
