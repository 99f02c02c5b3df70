"""The outside API for tests of sources."""

from collections.abc import Iterator

import pytest

from tests.tools.sources.outside import Outside, running


@pytest.fixture
def outside() -> Iterator[Outside]:
    """An HTTP API that records what it receives."""
    with running() as api:
        yield api
