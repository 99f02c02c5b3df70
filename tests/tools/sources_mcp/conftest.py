"""Each test ends the processes that it started."""

from collections.abc import Iterator

import pytest

from tools.sources.mcp import PROCESS_POOL


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    yield
    PROCESS_POOL.close_all()
