"""Fault tests: real processes on the real database; when a test has ended, everything must have settled rightly."""

from collections.abc import Iterator

import pytest

from tests.engine.invariants import assert_invariants
from tests.engine.workshop import build_workshop
from tests.faults.awaiting import await_that
from tests.faults.site import Site, unsettled
from tests.model_server import ModelServer
from tests.probes import RECORDER_VARIABLE
from tests.processes import Installation
from tests.recorder import Recorder


@pytest.fixture
def site(installation: Installation) -> Iterator[Site]:
    """A tenth of the real times, unless the test sets `installation.timing_scale` before it starts anything."""
    with Recorder() as recorder, ModelServer() as model:
        installation.variables[RECORDER_VARIABLE] = recorder.url
        yield Site(installation, build_workshop(), recorder, model)
        await_that(lambda: not unsettled(), "all runs are settled")
        assert_invariants()
        assert max(recorder.effects.values(), default=0) <= 1, recorder.effects
