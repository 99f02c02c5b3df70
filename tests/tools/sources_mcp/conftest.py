"""Each test ends the processes that it started."""

from collections.abc import Iterator

import pytest

from tools.sources.mcp import CONNECTIONS


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    yield
    CONNECTIONS.close_all()
