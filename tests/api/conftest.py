"""Shared fixtures of the REST API tests."""

from __future__ import annotations

import pytest
from django.core.cache import cache

from tests.world import World, make_world


@pytest.fixture(autouse=True)
def _no_wrong_tokens_yet() -> None:
    """Reset the per-minute count of wrong tokens, so that earlier tests do not affect this one."""
    cache.clear()


@pytest.fixture
def world() -> World:
    return make_world()
