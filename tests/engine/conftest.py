"""The engine's tests: a workshop each, on the real database, with the recorder outside."""

from collections.abc import Iterator

import pytest

from tests.engine.invariants import assert_invariants
from tests.engine.workshop import Workshop, build_workshop
from tests.probes import RECORDER_VARIABLE
from tests.recorder import Recorder


@pytest.fixture
def workshop(transactional_db: None) -> Iterator[Workshop]:
    """An organisation at work; when the test has ended, the invariants must hold."""
    yield build_workshop()
    assert_invariants()


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """The outside world, for the tests' own tools."""
    with Recorder() as outside:
        monkeypatch.setenv(RECORDER_VARIABLE, outside.url)
        yield outside
