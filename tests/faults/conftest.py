"""Fixtures of the fault tests: the same real processes serve all tests of a file, and all runs must
be settled after each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from tests.awaiting import await_that
from tests.emptying import empty_tables
from tests.faults.site import Site, list_unsettled_runs
from tests.model_server import ModelServer
from tests.probes import RECORDER_VARIABLE
from tests.processes import Installation
from tests.recorder import Recorder
from tests.workshop import build_workshop
from tests.workshop.invariants import assert_invariants


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    """Yield the server that stands in for the outside world."""
    with Recorder() as outside:
        yield outside


@pytest.fixture(scope="module")
def installation(
    request: pytest.FixtureRequest,
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    recorder: Recorder,
) -> Iterator[Installation]:
    """Run Gadget with shortened times, or at the file's TIMING_SCALE; its processes serve one test
    after another.

    The file's VARIABLES are added to the environment.
    """
    scale = getattr(request.module, "TIMING_SCALE", 0.1)
    variables = {RECORDER_VARIABLE: recorder.url, **getattr(request.module, "VARIABLES", {})}
    with Installation(timing_scale=scale, variables=variables, is_forked=True) as running:
        yield running
    with django_db_blocker.unblock():
        empty_tables()


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    """Yield a model server whose responses can be held."""
    with ModelServer() as server:
        yield server


@pytest.fixture
def site(
    transactional_db: None, installation: Installation, recorder: Recorder, model: ModelServer
) -> Iterator[Site]:
    """Create the rows of one test; afterwards all runs must be settled, and the invariants must
    hold."""
    running = Site(installation, build_workshop(), recorder, model)
    yield running
    await_that(lambda: not list_unsettled_runs(), "all runs are settled")
    assert_invariants()
    assert max(recorder.effects.values(), default=0) <= 1, recorder.effects
    installation.forget_files()


@pytest.fixture(autouse=True)
def _release_everything(
    transactional_db: None, installation: Installation, recorder: Recorder, model: ModelServer
) -> Iterator[None]:
    """Release and resume everything that the test held or paused."""
    yield
    model.reset()
    recorder.reset()
    for process in installation.processes:
        process.resume()
